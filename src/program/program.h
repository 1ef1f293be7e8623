// The whole program behind main(): a command line in, an exit code out. What it understands, and where it is tested,
// is said in program.cc.
#pragma once

namespace weir {

int run_program(int argc, char** argv);

}  // namespace weir
