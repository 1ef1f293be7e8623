// Examines the Redis that a server shares with others. Part of doctor.h's examination.
//
// Pure. One thread. Tested by doctor_store_test.cc and tests/server/fleet_admin.sh.
#pragma once

#include <string_view>
#include <vector>

#include "cli/doctor.h"

namespace weir {

void look_at_store(const Patient& patient, std::vector<Finding>& out);

// A vulnerability of this version that any user with script permission could exploit; empty if none is known.
std::string_view known_hole(std::string_view software, std::string_view version);

}  // namespace weir
