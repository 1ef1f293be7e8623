// A number with its noun, for people: `1 rule`, `2 rules`.
//
// Pure; any thread may call it. Tested by cli/table_text_test.cc.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace weir {

inline std::string counted(std::string_view number, std::string_view noun) {
  return std::string(number) + ' ' + std::string(noun) + (number == "1" ? "" : "s");
}
inline std::string counted(std::integral auto number, std::string_view noun) {
  return counted(std::string_view(std::to_string(number)), noun);
}

}  // namespace weir
