// The check of a time that a change is to hold for, as the flags of commands give it.
//
// An empty one is refused, too: a change that was to end by itself would hold for ever. Any thread. Tested by
// tests/server/commands.sh.
#pragma once

#include <string>

#include "admin/control.h"

namespace weir {

inline std::string why_not_lasting(const std::string& text) {
  const auto lasts = parse_lasting(text);
  return lasts ? std::string() : lasts.error().message;
}

}  // namespace weir
