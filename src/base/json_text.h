// A text as a JSON string.
//
// Pure; any thread may call it. Tested by json_text_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace weir::base {

// Appends a JSON text with its quotes. Bytes that are not UTF-8 become U+FFFD.
void append_json_text(std::string& out, std::string_view text);

}  // namespace weir::base
