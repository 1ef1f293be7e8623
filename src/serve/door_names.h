// Parses lists of listeners in flags, such as http,resp.
//
// Any thread. Tested by tests/server/tls.sh and proxy_protocol.sh there.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "server/loop/counts.h"
#include "weir/result.h"

namespace weir {

// `option` is the flag that an error message names.
Result<std::array<bool, kDoors>> parse_doors(const char* option, std::string_view text);

// Calls `use` for each part between commas, without surrounding blanks.
template <class Use>
Result<void> for_each_part(std::string_view text, Use use) {
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (Result<void> used = use(part); !used || comma == text.npos) return used;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace weir
