// Where the program begins: src/program/ has all of it, so that what needs CLI11 is compiled together.
#include "program/program.h"

int main(int argc, char** argv) { return weir::run_program(argc, argv); }
