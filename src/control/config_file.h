// Reads config files, policies and secrets.
//
// No path can make the reader hang or use too much memory: it reads plain files only, up to the maximum size of a
// policy. Any thread. Tested by tests/server/policy.sh and tests/server/foreign_files.sh.
#pragma once

#include <string>

#include "weir/policy.h"
#include "weir/result.h"

namespace weir::control {

// The text of a config; `-` means standard input.
Result<std::string> read_config(const std::string& path);

Result<Policy> load_policy(const std::string& path);

// A password or token: the first line of the file.
Result<std::string> read_secret(const std::string& path);
// Whether its mode lets every user of the machine read or write it, as with a token file written by a shell. The mode
// of its folder is ignored, because folders can be opened later and files can be moved.
bool is_open_to_others(const std::string& path);

}  // namespace weir::control
