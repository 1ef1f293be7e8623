// Checks how long a change is to be in effect, in the flags of commands.
//
// An empty text is refused, too: the change would otherwise never end. Any thread. Tested by
// tests/server/commands.sh.
#pragma once

#include <string>

#include "control/control.h"

namespace weir {

inline std::string why_not_lasting(const std::string& text) {
  const auto lasts = parse_lasting(text);
  return lasts ? std::string() : lasts.error().message;
}

}  // namespace weir
