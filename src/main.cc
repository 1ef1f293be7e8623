// Where the program begins. src/program/ has all of it, so that everything which needs CLI11 is compiled together:
// that takes longer than all else.
#include "program/program.h"

int main(int argc, char** argv) { return weir::run_program(argc, argv); }
