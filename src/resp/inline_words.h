// Splits a typed line into words, with the quotes and escapes that redis-cli users know.
//
// "double" quotes know \n \r \t \b \a \xHH and \any; 'single' quotes know \' only. A closing quote must end
// its word. Tested by request_test.cc.
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
// Appends the words to `bytes`, one after the other, and the end of each within it to `ends`.
SplitError split_inline(std::string_view line, std::size_t words_max, std::string& bytes,
                        std::vector<std::size_t>& ends);

}  // namespace weir::resp
