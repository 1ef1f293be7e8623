// Parses a list of listeners. See door_names.h.
#include "serve/door_names.h"

#include <algorithm>

#include "base/nearest.h"

namespace weir {

Result<std::array<bool, kDoors>> parse_doors(const char* option, std::string_view text) {
  std::array<bool, kDoors> doors{};
  const auto read = for_each_part(text, [&](std::string_view name) -> Result<void> {
    const auto* const found = std::find(kDoorNames.begin(), kDoorNames.end(), name);
    if (found == kDoorNames.end()) {
      return fail(ErrorCode::invalid_argument, std::string(option) + ": unknown listener " + in_quotes(name) +
                                                   "; write some of http,grpc,resp,admin");
    }
    doors[static_cast<std::size_t>(found - kDoorNames.begin())] = true;
    return {};
  });
  if (!read) return fail(read.error());
  return doors;
}

}  // namespace weir
