// What COMMAND DOCS tells of the commands that limit, so that redis-cli can show their arguments while one types.
//
// Plain tables. Any thread. Tested by resp_session_test.cc.
#pragma once

#include <string_view>

#include "resp/writer.h"

namespace weir {

// The names that have an entry, in their order; empty behind the last.
std::string_view documented_command(std::size_t index);

// The name and its entry, two values of a map; false, and nothing written, if it has none. `name` in lower case.
bool write_docs(std::string_view name, std::string_view version, resp::Writer& out);

}  // namespace weir
