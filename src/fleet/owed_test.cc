// What is owed to Redis after it was away.

#include "fleet/owed.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Owed, AddsUpByKeyAndGivesAllBackOnce) {
  const Limit limit = compile("5/minute").value();
  Owed owed(10);
  EXPECT_TRUE(owed.add("a", {.key = "ka", .limit = &limit, .cost = 2}, Micros{5}));
  EXPECT_TRUE(owed.add("a", {.key = "ka", .limit = &limit, .cost = 1}, Micros{9}));
  EXPECT_TRUE(owed.add("b", {.key = "kb", .limit = &limit, .cost = 1}, Micros{5}));
  EXPECT_EQ(owed.size(), 2u);
  EXPECT_EQ(owed.cost_of("a", Micros{8}), 3);
  EXPECT_EQ(owed.cost_of("a", Micros{9}), 0);
  EXPECT_EQ(owed.cost_of("c", Micros{8}), 0);
  std::int64_t sum = 0;
  for (const Debt& debt : owed.take(10)) {
    sum += debt.cost;
    if (debt.key != "ka") continue;
    EXPECT_EQ(debt.cost, 3);
    EXPECT_EQ(debt.until, Micros{9});
  }
  EXPECT_EQ(sum, 4);
  EXPECT_EQ(owed.size(), 0u);
}

TEST(Owed, IsNoMoreThanIsStillSpent) {
  const Limit limit = compile("5/minute").value();
  const auto owes = [](Owed& owed) { return owed.cost_of("a", Micros{0}); };
  Owed owed(10);
  for (int i = 0; i < 9; ++i) owed.add("a", {.key = "ka", .limit = &limit, .cost = 1}, Micros{5}, 3);
  EXPECT_EQ(owes(owed), 3) << "the others have been recovered from";
  EXPECT_TRUE(owed.add("a", {.key = "ka", .limit = &limit, .cost = -2}, Micros{5}));
  EXPECT_EQ(owes(owed), 1);
  EXPECT_TRUE(owed.add("a", {.key = "ka", .limit = &limit, .cost = -2}, Micros{5}));
  EXPECT_EQ(owes(owed), 0);
  EXPECT_FALSE(owed.add("b", {.key = "kb", .limit = &limit, .cost = -2}, Micros{5})) << "nobody is owed to";
  EXPECT_EQ(owed.lost(), 0u);
  owed.add("a", {.key = "ka", .limit = &limit, .cost = 4}, Micros{5});
  owed.forget("a");
  owed.forget("a");
  EXPECT_EQ(owes(owed), 0);
}

TEST(Owed, CountsWhatItHasNoRoomFor) {
  const Limit limit = compile("5/minute").value();
  Owed owed(1);
  EXPECT_TRUE(owed.add("a", {.key = "ka", .limit = &limit, .cost = 1}, Micros{5}));
  EXPECT_FALSE(owed.add("b", {.key = "kb", .limit = &limit, .cost = 4}, Micros{5}));
  EXPECT_TRUE(owed.add("a", {.key = "ka", .limit = &limit, .cost = 1}, Micros{5}));
  EXPECT_EQ(owed.lost(), 4u);
}

}  // namespace
}  // namespace weir
