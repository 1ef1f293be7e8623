// The saved state of a fleet node, in a file, for a start while Redis is unavailable: its seat among the nodes, and
// its unsynced charges.
//
// When the node ends, it writes seat and charges. When its seat changes, and right after it has read the charges, it
// writes the file without charges, so that no charge is written to Redis twice. A file that is damaged, or of another
// version, is refused whole. Any thread; one at a time per file. Tested by keepsake_test.cc and
// tests/server/fleet_restart.sh.
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
  std::vector<Debt> debts{};  // `until` is a time of the wall clock; `spent` is not saved
};

std::string to_text(const Keepsake& kept);
Result<Keepsake> parse_keepsake(std::string_view text);

Result<Keepsake> read_keepsake(const std::string& path);  // not_found if there is none
Result<void> write_keepsake(const std::string& path, const Keepsake& kept);

}  // namespace weir
