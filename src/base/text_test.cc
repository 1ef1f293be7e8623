// Tests when a string frees its memory, and when it keeps it.
#include "base/text.h"

#include <gtest/gtest.h>

namespace weir::base::text_test {
namespace {

TEST(Text, FreesItsMemory) {
  std::string text(100'000, 'x');
  free_memory(text);
  EXPECT_TRUE(text.empty());
  EXPECT_LT(text.capacity(), 100U);
}

TEST(Text, KeepsSmallMemoryWhenItIsEmptiedOut) {
  std::string small(1'000, 'x'), large(1'001, 'x');
  for (std::string* const text : {&small, &large}) {
    empty_out(*text, 1'000);
    EXPECT_TRUE(text->empty());
  }
  EXPECT_GE(small.capacity(), 1'000U);
  EXPECT_LT(large.capacity(), 100U);
}

}  // namespace
}  // namespace weir::base::text_test
