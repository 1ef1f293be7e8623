// A policy from a file. Nothing that a path may name can hang or flood the reader: only plain files are read, and no
// more of them than a policy may have. Any thread. Tested by tests/server/policy.sh and
// tests/server/foreign_files.sh.
#pragma once

#include <string>

#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

// The text of a config; `-` is the standard input.
Result<std::string> read_config(const std::string& path);

Result<Policy> load_policy(const std::string& path);

// A password or a token: the first line of the file.
Result<std::string> read_secret(const std::string& path);
// Whether its mode lets every user of the machine read or write it, as of a token that was written by a shell. That its
// folder may be closed is not looked at: folders are opened, and files are moved.
bool is_open_to_others(const std::string& path);

}  // namespace weir
