// The C++ arithmetic, mutated: compiled by mutants_test.cc into a library of its own, with a folder of mutated headers
// before the real ones. The library exports only one function, or the program's own arithmetic would be used.

#include "cell_engine.h"

extern "C" __attribute__((visibility("default"))) weir::test::Engine* make_mutant(const weir::Limit& limit) {
  return new weir::test::CellEngine(limit);
}
