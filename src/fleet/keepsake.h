// What a node of a fleet keeps in a file, for a start while Redis cannot be asked: which of how many nodes it was, and
// what it owes.
//
// Written as a whole when it ends, and without debts when its seat changes and as soon as they have been read: no debt
// is paid twice. A file that is damaged, or another version's, is refused as a whole. Any thread, one at a time for a
// file. Tested by keepsake_test.cc and tests/server/fleet_restart.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/owed.h"
#include "fleet/share.h"
#include "weir/result.h"

namespace weir {

struct Keepsake {
  Seat seat{};
  std::vector<Debt> debts{};  // until a time of the wall clock; what was spent here is not kept
};

std::string to_text(const Keepsake& kept);
Result<Keepsake> parse_keepsake(std::string_view text);

Result<Keepsake> read_keepsake(const std::string& path);  // not_found if there is none
Result<void> write_keepsake(const std::string& path, const Keepsake& kept);

}  // namespace weir
