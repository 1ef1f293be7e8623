// Completion scripts for bash, zsh and fish, generated from the tree of commands.
//
// Pure; any thread. Tested by tests/server/completion.sh, which asks bash itself.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace weir {

std::string bash_completion(const CLI::App& program);
std::string zsh_completion(const CLI::App& program);
std::string fish_completion(const CLI::App& program);

}  // namespace weir
