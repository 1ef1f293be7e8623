// `weir serve`, the one command that cli/command.h leaves out, because src/cli may not include the server.
//
// main() adds it to the others. Tested by tests/server/*.sh.
#pragma once

#include "cli/command.h"

namespace weir::serve {

extern const cli::Command kServeCommand;

}  // namespace weir::serve
