// The man pages, in roff: weir(1) from the tree of commands, weir.yaml(5) from the rows that the parser of configs
// reads by. So neither can tell of an option that is not there, nor miss one that is.
//
// Pure; any thread. Tested by tests/server/manual.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace weir {

// The examples of a command, as its help leads with them; empty if it has none.
using ExamplesOf = std::function<std::string_view(std::string_view command)>;

std::string program_manual(const CLI::App& program, const ExamplesOf& examples_of, std::string_view version);
std::string config_manual(std::string_view version);

}  // namespace weir
