// The entry point of the program. The rest is in src/serve/ and src/cli/, so that all code which needs CLI11 is
// compiled together: that takes longer than everything else.
#include "serve/serve_command.h"

int main(int argc, char** argv) { return weir::cli::run_program(argc, argv, weir::serve::kServeCommand); }
