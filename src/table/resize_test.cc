// Every key of every kind decides after a resize as before. A resize whose keys do not fit is refused and changes
// nothing.

#include "table/resize.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <vector>

#include "algorithm/limit.h"
#include "base/folder_fixture.h"
#include "table/contents.h"
#include "table/table.h"

namespace weir::table::resize_test {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kHour = 3'600'000'000, kYear = 365 * 24 * kHour;

// The error message; empty if it succeeded.
template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

class Resize : public ::testing::Test {
 protected:
  // Every opening has the same time. resize() itself reads the system clock, which is a moment later.
  std::unique_ptr<Table> open_table(std::uint64_t keys = 0, std::uint64_t arena_bytes = 0) {
    auto table = Table::open({.file = path_, .keys = keys, .arena_bytes = arena_bytes, .clock = clock_});
    EXPECT_TRUE(table) << table.error().message;
    return table ? std::move(*table) : nullptr;
  }
  Decision charge(Table& table, const Limit& limit, const std::string& key, std::int64_t cost) {
    Debit debit{.name = table.key_name(limit.algorithm, key), .limit = &limit, .cost = cost};
    const auto ruling = table.charge({&debit, 1}, {}, clock_->now().count());
    EXPECT_TRUE(ruling) << ruling.error().message;
    return debit.decision;
  }
  std::string bytes() const { return folder_.read("state"); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator{}));
  }

  // Keys of all kinds, each charged a different amount.
  void fill(Table& table, int count) {
    for (int i = 0; i < count; ++i) {
      const Limit& limit = limits_[static_cast<std::size_t>(i) % limits_.size()];
      const int charges = limit.algorithm == Algorithm::sliding_log ? 1 + i % 7 : 1;
      for (int k = 0; k < charges; ++k) {
        charge(table, limit, std::to_string(i), 1 + i % 9);
        clock_->advance(Micros{1});
      }
    }
  }
  std::vector<Decision> peeks(Table& table, int count) {
    std::vector<Decision> decisions;
    for (int i = 0; i < count; ++i) {
      decisions.push_back(charge(table, limits_[static_cast<std::size_t>(i) % limits_.size()], std::to_string(i), 0));
    }
    return decisions;
  }

  const std::vector<Limit> limits_ = {
      *algorithm::make_window(Algorithm::fixed_window, 100, kYear),
      *algorithm::make_window(Algorithm::sliding_window, 1'000, kYear),
      *algorithm::make_window(Algorithm::sliding_window, kPermitsMax, kYear),  // in a block
      *algorithm::make_bucket(Algorithm::token_bucket, 50, kHour, 80),
      *algorithm::make_bucket(Algorithm::leaky_meter, 3, 7 * kHour, 200),
      *algorithm::make_window(Algorithm::sliding_log, 1'000, kHour),
      *algorithm::make_window(Algorithm::sliding_log, 1'000, kYear / 2),
  };
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{read_clocks().wall_us});
  const base::TestFolder folder_;
  std::string path_ = folder_.at("state");
};

TEST_F(Resize, KeepsEveryKeyThroughGrowingAndShrinking) {
  constexpr int kKeys = 1'500;
  auto table = open_table(2'000, 1 << 19);
  fill(*table, kKeys);
  const auto before = peeks(*table, kKeys);
  table.reset();
  for (const std::uint64_t keys : {2'000u, 2'300u, 20'000u, 4'001u, 100'000u, 1'700u}) {
    const auto resized = resize({.path = path_, .keys = keys});
    ASSERT_TRUE(resized) << keys << ": " << resized.error().message;
    EXPECT_EQ(resized->kept, kKeys);
    EXPECT_EQ(resized->dropped, 0);
    table = open_table(keys);
    ASSERT_TRUE(table);
    EXPECT_EQ(peeks(*table, kKeys), before) << keys;
    EXPECT_EQ(charge(*table, limits_[3], "new", 0).remaining, 80);
    table.reset();
  }
  EXPECT_EQ(files(), 1);
}

TEST_F(Resize, LosesNoLineOfTheArena) {
  auto table = open_table(2'000, 1 << 19);
  fill(*table, 700);
  table.reset();
  ASSERT_TRUE(resize({.path = path_, .arena_bytes = 700'000}));
  auto copy = open_copy(path_, CopyTo::look);
  Contents contents(std::move(*copy), nullptr, read_clocks());
  const Totals totals = contents.walk([](const Held&) {});
  EXPECT_EQ(totals.live, 700);
  EXPECT_EQ(totals.unreadable, 0);
  EXPECT_GT(totals.arena_lines, 300);
  EXPECT_EQ(totals.arena_lines + free_lines(contents.region()), contents.region().arena_lines());
}

TEST_F(Resize, DropsExpiredKeysAndKeepsTickets) {
  auto table = open_table(1'000);
  clock_->advance(Micros{-2 * kHour});
  const Limit minute = *algorithm::make_window(Algorithm::sliding_window, 10, 60'000'000);
  const std::int64_t then = clock_->now().count();
  std::vector<Ticket> tickets = {
      {.name = table->ticket_name(kRequest, "short"), .kind = kRequest, .expires_us = then + kHour},
      {.name = table->ticket_name(kRequest, "long"), .kind = kRequest, .expires_us = then + 24 * kHour},
  };
  for (Ticket& ticket : tickets) {
    Debit debit{.name = table->key_name(minute.algorithm, "a"), .limit = &minute, .cost = 1};
    EXPECT_EQ(table->charge({&debit, 1}, {&ticket, 1}, then), Ruling::allowed);
  }
  clock_->advance(Micros{2 * kHour});
  charge(*table, limits_[0], "b", 7);
  table.reset();
  const auto resized = resize({.path = path_, .keys = 9'000});
  ASSERT_TRUE(resized);
  EXPECT_EQ(resized->kept, 2);
  EXPECT_EQ(resized->dropped, 2);
  table = open_table();
  EXPECT_EQ(charge(*table, limits_[0], "b", 0).remaining, 93);
  Debit debit{.name = table->key_name(minute.algorithm, "a"), .limit = &minute, .cost = 1};
  EXPECT_EQ(table->charge({&debit, 1}, {&tickets[1], 1}, clock_->now().count()), Ruling::repeated);
}

TEST_F(Resize, KeepsPermitsInFlight) {
  auto table = open_table(1'000);
  const Limit limit = *algorithm::make_window(Algorithm::concurrency, 5, kHour);
  const auto acquire = [&](std::string_view id, std::int64_t cost) {
    Debit debit{table->key_name(limit.algorithm, "a"), &limit, cost, Act::acquire, id};
    EXPECT_TRUE(table->charge({&debit, 1}, {}, clock_->now().count()));
    return debit.decision.allowed;
  };
  EXPECT_TRUE(acquire("12345678", 3));
  table.reset();
  ASSERT_TRUE(resize({.path = path_, .keys = 9'000}));
  table = open_table();
  EXPECT_FALSE(acquire("abcdefgh", 3));
  EXPECT_TRUE(acquire("abcdefgh", 2));
  EXPECT_TRUE(acquire("12345678", 3)) << "is renewed";
}

TEST_F(Resize, OfATableInUseIsRefused) {
  const auto table = open_table(1'000);
  const auto resized = resize({.path = path_, .keys = 2'000});
  EXPECT_EQ(message_of(resized), path_ + ": is in use; stop the processes that use it first");
}

TEST_F(Resize, IntoTooSmallACapacityIsRefusedAndChangesNothing) {
  auto table = open_table(3'000, 1 << 19);
  fill(*table, 2'500);
  table.reset();
  const std::string before = bytes();
  const auto keys = resize({.path = path_, .keys = 1'000});
  EXPECT_NE(message_of(keys).find("do not fit into a capacity of 1134 keys; use more --keys"), std::string::npos);
  const auto memory = resize({.path = path_, .arena_bytes = 1});
  EXPECT_NE(message_of(memory).find("use more --memory"), std::string::npos) << message_of(memory);
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(files(), 1);
}

TEST_F(Resize, ToATotalMemoryLeavesTheRestToLogs) {
  auto table = open_table(3'000, 1 << 19);
  fill(*table, 2'000);
  table.reset();
  const auto resized = resize({.path = path_, .memory = 10'000'000});
  ASSERT_TRUE(resized) << message_of(resized);
  EXPECT_EQ(resized->after.pages, resized->before.pages);
  EXPECT_GT(resized->after.arena_lines, resized->before.arena_lines);
  EXPECT_LE(fs::file_size(path_), 10'000'000u);
  EXPECT_GT(fs::file_size(path_), 10'000'000u - 2 * 4096);
  const auto little = resize({.path = path_, .memory = 1'000'000});
  EXPECT_NE(message_of(little).find("1000000 bytes are too few"), std::string::npos) << message_of(little);
}

TEST_F(Resize, OfATableThatWasMadeSmallerIsRefused) {
  open_table(10'000);
  ASSERT_TRUE(resize({.path = path_, .keys = 1'000}));
  const auto again = resize({.path = path_, .keys = 5'000});
  EXPECT_NE(message_of(again).find("was shrunk before"), std::string::npos);
  EXPECT_TRUE(resize({.path = path_, .arena_bytes = 1 << 20}));
}

TEST_F(Resize, KeepsTheModeOfTheFileAndASymbolicLinkToIt) {
  open_table(1'000);
  fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  const std::string target = path_;
  path_ = folder_.at("link");
  fs::create_symlink(target, path_);
  ASSERT_TRUE(resize({.path = path_, .keys = 2'000}));
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(fs::status(target).permissions(), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  EXPECT_TRUE(open_table(2'000));
}

TEST_F(Resize, OfAMissingFileIsRefused) {
  EXPECT_EQ(message_of(resize({.path = path_})), path_ + ": no such state file");
}

}  // namespace
}  // namespace weir::table::resize_test
