// The man pages in roff: weir(1) from the tree of commands, weir.yaml(5) from the parser's tables. So they have
// exactly the options that exist.
//
// Pure; any thread. Tested by tests/server/manual.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace weir {

// A command's examples, with which its help begins; empty if it has none.
using ExamplesOf = std::function<std::string_view(std::string_view command)>;

std::string program_manual(const CLI::App& program, const ExamplesOf& examples_of, std::string_view version);
std::string config_manual(std::string_view version);

}  // namespace weir
