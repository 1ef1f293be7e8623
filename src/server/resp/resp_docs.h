// The COMMAND DOCS entries of the limiting commands, so that redis-cli shows their arguments as hints.
//
// Plain tables. Any thread. Tested by resp_session_test.cc.
#pragma once

#include <string_view>

#include "resp/writer.h"

namespace weir {

// The names with an entry, by index; empty after the last.
std::string_view documented_command(std::size_t index);

// Writes the name and its entry, two values of a map. Returns false and writes nothing if there is no entry. `name`
// is in lower case.
bool write_docs(std::string_view name, std::string_view version, resp::Writer& out);

}  // namespace weir
