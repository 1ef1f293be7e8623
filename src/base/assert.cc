// Ends the program when an assertion is false, after it has said which. See WEIR_ASSERT in weir/result.h. Any thread.
// It is here, since any folder may assert. Tested by the tests of what asserts.
#include <cstdio>
#include <cstdlib>

#include "weir/result.h"

namespace weir {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace weir
