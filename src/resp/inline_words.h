// Splits a typed line into words, with the quotes and escapes of redis-cli.
//
// "double" quotes support \n \r \t \b \a \xHH and \any; 'single' quotes support \' only. A closing quote must end its
// word. Pure; any thread. Tested by request_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::resp {

enum class SplitError : std::uint8_t { none, unbalanced_quotes, too_many_words };

// split_inline()
//
// Appends the words to `bytes`, without separators, and the end of each word within `bytes` to `ends`.
SplitError split_inline(std::string_view line, std::size_t words_max, std::string& bytes,
                        std::vector<std::size_t>& ends);

}  // namespace weir::resp
