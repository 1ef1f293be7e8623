// The whole program behind main(): takes a command line, returns an exit code. program.cc says which commands there
// are and where they are tested.
#pragma once

namespace weir {

int run_program(int argc, char** argv);

}  // namespace weir
