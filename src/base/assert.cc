// Prints the assertion that is false, and aborts the program. See WEIR_ASSERT in weir/result.h. Any thread. Tested
// through the tests of code that asserts, limit_test.cc among them.
#include <cstdio>
#include <cstdlib>

#include "weir/result.h"

namespace weir {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace weir
