// The saved state of a fleet node, in a file, for a start while Redis is unavailable: its rank among the nodes, and
// its unsynced charges.
//
// When the node ends, it writes rank and charges. When its rank changes, and right after it has read the charges, it
// writes the file without charges, so that no charge is written to Redis twice. A file that is damaged, or of another
// version, is refused whole. Any thread; one at a time per file. Tested by saved_fleet_state_test.cc and
// tests/server/fleet_restart.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fleet/share.h"
#include "fleet/unsynced_charges.h"
#include "weir/result.h"

namespace weir::fleet {

struct SavedFleetState {
  NodeRank rank{};
  std::vector<UnsyncedCharge> charges{};  // `until` is a time of the wall clock; `local_usage` is not saved
};

std::string to_text(const SavedFleetState& kept);
Result<SavedFleetState> parse_saved_fleet_state(std::string_view text);

Result<SavedFleetState> read_saved_fleet_state(const std::string& path);  // not_found if there is none
Result<void> write_saved_fleet_state(const std::string& path, const SavedFleetState& kept);

}  // namespace weir::fleet
