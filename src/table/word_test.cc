// Sixteen bytes as one: a read returns both halves of one moment, and an exchange happens once.
#include "table/word.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weir::table::word_test {
namespace {

TEST(Word, IsExchangedOnlyForWhatWasExpected) {
  Unit unit{4, 7};
  Word seen{4, 8};
  EXPECT_FALSE(exchange(unit, seen, {12, 1}));
  EXPECT_EQ(seen, (Word{4, 7})) << "exchange() returns what it found";
  EXPECT_TRUE(exchange(unit, seen, {12, 1}));
  EXPECT_EQ(load(unit), (Word{12, 1}));
  EXPECT_TRUE(has_wide_atomics());
}

// Writers keep both halves equal. A reader that saw halves of two writes would notice.
TEST(Word, IsReadAndWrittenWhole) {
  Unit unit{0, 0};
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50'000;) {
        Word seen = load(unit);
        if (exchange(unit, seen, {seen.tag + 4, seen.state + 4})) ++i;
      }
    });
    threads.emplace_back([&] {
      while (!over) {
        const Word seen = load(unit);
        if (seen.tag != seen.state) ++torn;
      }
    });
  }
  threads[0].join();
  threads[2].join();
  over = true;
  threads[1].join();
  threads[3].join();
  EXPECT_EQ(torn, 0u);
  EXPECT_EQ(load(unit), (Word{400'000, 400'000})) << "no change was lost";
}

}  // namespace
}  // namespace weir::table::word_test
