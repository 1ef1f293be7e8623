// Doors by their names, as flags list them: http,resp.
//
// Any thread. Tested by tests/server/tls.sh and proxy_protocol.sh there.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "server/counts.h"
#include "weir/result.h"

namespace weir {

// `option` is what a message tells the user to change.
Result<std::array<bool, kDoors>> parse_doors(const char* option, std::string_view text);

// The parts between commas, blanks around them dropped.
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
