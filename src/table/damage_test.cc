// Damaged tables. What no operation could have written is an error for the request that meets it. The request ends
// soon, never crashes, and frees no used permits. A repair gives the damage the worst interpretation, even if the
// repair itself is killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/folder_fixture.h"
#include "table/table.h"

namespace weir::table::damage_test {
namespace {

constexpr std::int64_t kNow = 1'794'701'843'991'953, kHour = 3'600'000'000;

class Damage : public ::testing::Test {
 protected:
  Damage() { open(); }

  void open() {
    auto opened = Table::open({.file = path_, .keys = 1'000, .clock = clock_});
    ASSERT_TRUE(opened) << opened.error().message;
    table_ = *std::move(opened);
  }
  // Opens it again as after a kill, or in another boot. Its bytes may change in between.
  void reopen(std::uint64_t condition, const std::function<void(const Region&)>& change = {}) {
    table_.reset();
    const int fd = ::open(path_.c_str(), O_RDWR);
    const auto bytes = static_cast<std::size_t>(lseek(fd, 0, SEEK_END));
    void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    Header& header = *static_cast<Header*>(base);
    header.clean = condition;
    if (change) change(Region(base, header.pages, header.base_pages, header.arena_lines));
    munmap(base, bytes);
    open();
  }

  Result<Decision> charge(const std::string& key, const Limit& limit, std::int64_t cost) {
    Debit debit{.name = table_->key_name(limit.algorithm, key), .limit = &limit, .cost = cost};
    if (const auto ruling = table_->charge({&debit, 1}, {}, clock_->now().count()); !ruling) {
      return fail(ruling.error());
    }
    return debit.decision;
  }
  void expect_damaged(const std::string& key, const Limit& limit, std::int64_t cost) {
    const auto decision = charge(key, limit, cost);
    ASSERT_FALSE(decision) << "allowed: " << decision->allowed << ", remaining " << decision->remaining;
    EXPECT_NE(decision.error().message.find("the table is damaged"), std::string::npos) << decision.error().message;
  }

  Unit& slot_of(const std::string& key, const Limit& limit) {
    const Name name = table_->key_name(limit.algorithm, key);
    const Region& region = table_->region();
    for (Unit& unit : slots_of(region.page(region.page_of(name.place, name.name)))) {
      if (unit.tag != 0 && name_of(unit.tag) == name.name) return unit;
    }
    ADD_FAILURE() << key << " has no slot";
    return table_->region().page(0).slots[0][0];
  }
  Line& block_of(const std::string& key, const Limit& limit) {
    return table_->region().line(line_of(slot_of(key, limit).state));
  }
  static void hold(Unit& unit, std::uint64_t ref) { unit = {(unit.tag & ~kMarkBits) | kHeld, ref}; }
  // An operation of a participant that does not exist, which every thread must help.
  void begin(std::uint64_t who, std::uint64_t number, Unit& wanted) {
    Participant& record = table_->region().participant(who);
    record.status = number << 2 | kHelp;
    record.count = 1;
    record.entries[0] = {table_->region().number_of(wanted), {wanted.tag & ~kMarkBits, 1}, {}};
  }

  const base::TestFolder folder_;
  const std::string path_ = folder_.at("state");
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  const Limit bucket_ = *algorithm::make_bucket(Algorithm::token_bucket, 10, kHour, 10);
  const Limit log_ = *algorithm::make_window(Algorithm::sliding_log, 10, kHour);
  std::unique_ptr<Table> table_;
};

TEST_F(Damage, OperationsThatWaitForEachOtherAreAnError) {
  for (const char* key : {"x", "z", "other"}) ASSERT_TRUE(charge(key, bucket_, 3));
  Unit &x = slot_of("x", bucket_), &z = slot_of("z", bucket_);
  begin(100, 7, z);
  begin(101, 9, x);
  hold(x, reference(100, 7));
  hold(z, reference(101, 9));
  expect_damaged("x", bucket_, 1);
  expect_damaged("x", bucket_, 0);
  EXPECT_EQ(charge("other", bucket_, 0)->remaining, 7) << "other keys do not change";
  reopen(kInUse);
  EXPECT_FALSE(charge("x", bucket_, 1)->allowed) << "repaired: it counts as used up";
}

TEST_F(Damage, AChainThatEndsNowhereIsAnError) {
  for (const char* key : {"x", "z"}) ASSERT_TRUE(charge(key, bucket_, 3));
  Unit &x = slot_of("x", bucket_), &z = slot_of("z", bucket_);
  begin(100, 7, z);
  hold(x, reference(100, 7));
  hold(z, reference(102, 1'000));  // no such operation
  expect_damaged("x", bucket_, 1);
  expect_damaged("z", bucket_, 1);
}

TEST_F(Damage, AnOperationThatWouldLeaveMarksIsAnError) {
  ASSERT_TRUE(charge("x", bucket_, 3));
  Unit& x = slot_of("x", bucket_);
  begin(100, 7, x);
  Participant& record = table_->region().participant(100);
  record.status = 7 << 2 | kFailed;
  record.entries[0].old = {x.tag | kClaimed, reference(100, 3)};
  record.install_number = 3;
  record.install_held = reference(100, 7);
  hold(x, reference(100, 7));
  expect_damaged("x", bucket_, 1);
}

TEST_F(Damage, IsFoundSoonEvenIfEveryRecordNamesIt) {
  ASSERT_TRUE(charge("x", bucket_, 3));
  Unit& x = slot_of("x", bucket_);
  x = {x.tag | kClaimed, reference(102, 1'000)};
  const std::uint64_t number = table_->region().number_of(x);
  for (std::uint64_t who = 0; who < kParticipants; ++who) {
    Participant& record = table_->region().participant(who);
    record.status = 5 << 2 | kDone;
    record.count = kEntriesMax;
    for (Entry& entry : record.entries) entry.unit = number;
  }
  reopen(kInUse);
  EXPECT_FALSE(charge("x", bucket_, 1)->allowed);
}

TEST_F(Damage, InABlockRefundsNothing) {
  for (const bool is_new_boot : {false, true}) {
    ASSERT_TRUE(charge("log", log_, 0));
    if (!is_new_boot) {
      ASSERT_TRUE(charge("log", log_, 10)->allowed);
    }
    hold(block_of("log", log_).units[kState0], reference(102, 1'000));
    expect_damaged("log", log_, 0);
    expect_damaged("log", log_, 1);
    while (!table_->sweep(kNow, 1'000)) {
    }
    expect_damaged("log", log_, 1);
    reopen(is_new_boot ? kClean : kInUse, [&](const Region& region) { region.header().boot_id[0] ^= is_new_boot; });
    EXPECT_EQ(charge("log", log_, 0)->remaining, 0) << "it counts as used up";
    EXPECT_FALSE(charge("log", log_, 1)->allowed);
  }
}

// If any unit of any block is torn, no key gets used permits back, and no other key becomes used up.
TEST_F(Damage, OfOneBlockAffectsNoOtherKey) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(charge(std::to_string(i), log_, i < 4 ? 10 : 3)->allowed);
  for (const auto at : {kState0, kState1}) {
    std::vector<std::uint64_t> units;
    for (const char* key : {"1", "5"}) {
      units.push_back(table_->region().number_of(block_of(key, log_).units[at]));
    }
    reopen(kTorn, [&](const Region& region) {
      for (const std::uint64_t unit : units) hold(region.unit(unit), reference(102, 1'000));
    });
    for (int i = 0; i < 8; ++i) {
      const bool is_spent = i < 4 || i == 5;
      EXPECT_EQ(charge(std::to_string(i), log_, 0)->remaining, is_spent ? 0 : 7) << i;
    }
  }
}

TEST_F(Damage, IsRepairedWhicheverUserClosesTheTableLast) {
  ASSERT_TRUE(charge("log", log_, 10)->allowed);
  auto other = Table::open({.file = path_, .clock = clock_}).value();
  hold(block_of("log", log_).units[kState0], reference(102, 1'000));
  expect_damaged("log", log_, 1);
  table_.reset();
  other.reset();
  open();
  EXPECT_FALSE(charge("log", log_, 1)->allowed) << "repaired: it counts as used up";
}

TEST_F(Damage, OfAPendingUnitCausesNoEndlessLoop) {
  reopen(kClean, [](const Region& region) {
    for (std::uint64_t who = 0; who < kParticipants; ++who) {
      for (Unit& unit : region.participant(who).pending) unit = {std::uint64_t{1} << 34 | 3 << 2, 1};
    }
  });
  EXPECT_TRUE(charge("log", log_, 10)->allowed);
  EXPECT_FALSE(charge("log", log_, 1)->allowed);
}

TEST_F(Damage, OfTheMapsGivesNoBlockTwice) {
  ASSERT_TRUE(charge("log", log_, 10)->allowed);
  const Block used{line_of(slot_of("log", log_).state), 1};
  reopen(kClean, [&](const Region& region) {  // the lines beside it are free twice, in blocks of two sizes
    set_none_free(region);
    const std::uint64_t beside = used.line ^ 2;
    set_free(region, beside, beside + 2);
    set_free(region, beside, beside + 1);
    set_free(region, beside + 1, beside + 2);
  });
  Actor actor(table_->region(), 9);
  EXPECT_FALSE(take_block(actor, 0, 2));
}

TEST_F(Damage, IsRepairedByTheNextSoleUserAfterAClose) {
  ASSERT_TRUE(charge("log", log_, 10)->allowed);
  hold(block_of("log", log_).units[kState0], reference(102, 1'000));
  expect_damaged("log", log_, 1);
  table_.reset();
  open();
  EXPECT_FALSE(charge("log", log_, 1)->allowed);
}

TEST_F(Damage, OfTimesInALogIsAnErrorAndNotANegativeWait) {
  for (int i = 0; i < 10; ++i) {
    clock_->advance(Micros{1'000'000});
    ASSERT_TRUE(charge("log", log_, 1)->allowed);
  }
  ASSERT_EQ(log_format(log_), LogFormat::wide);
  // The fifth event, which a search for expired events does not read: its time is the lower 52 bits of the state.
  (&block_of("log", log_) + 1)->units[3].state -= static_cast<std::uint64_t>(5 * kHour);
  EXPECT_EQ(charge("log", log_, 4)->allowed, false);
  expect_damaged("log", log_, 5);
}

// A repair after a machine crash was killed: once before it did anything, once after it found a lost slot.
TEST_F(Damage, StaysLostIfTheRepairIsKilled) {
  ASSERT_TRUE(charge("x", bucket_, 3));
  const std::uint64_t x = table_->region().number_of(slot_of("x", bucket_));
  reopen(kTorn, [&](const Region& region) {  // a record that fits the word by chance: it must not be trusted
    Unit& unit = region.unit(x);
    Participant& record = region.participant(100);
    record.status = 7 << 2 | kFailed;
    record.count = 1;
    record.entries[0] = {x, {unit.tag, 0}, {unit.tag, 0}};
    hold(unit, reference(100, 7));
  });
  EXPECT_EQ(charge("x", bucket_, 0)->remaining, 0);

  ASSERT_TRUE(charge("y", bucket_, 3));
  const std::uint64_t y = table_->region().number_of(slot_of("y", bucket_));
  reopen(kInUse, [&](const Region& region) { hold(region.unit(y), reference(kParticipants - 1, kNumberMask)); });
  EXPECT_EQ(charge("y", bucket_, 0)->remaining, 0);
  EXPECT_EQ(table_->region().header().clean, kInUse);
}

}  // namespace
}  // namespace weir::table::damage_test
