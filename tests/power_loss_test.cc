// Power loss: each 4 KiB of a state file is as old as the system last wrote it, so a slot and its block may be from
// different times. The damage is bounded: no key admits more than its limit once more, and nothing crashes.
//
// The test mixes the bytes of one file at two moments and opens the result as after another boot. Keys with a block
// (logs, permits in flight, limits too large for a slot) matter most: their block may have an older state, or that of
// the key that had the block before.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "algorithm/limit.h"
#include "base/folder_fixture.h"
#include "read_file.h"
#include "seed.h"
#include "store_fixture.h"
#include "table/layout.h"

namespace weir::test {
namespace {

constexpr std::int64_t kHour = 3'600'000'000;
constexpr std::size_t kPageBytes = 4'096;
constexpr int kKeys = 40;

class PowerLoss : public ::testing::Test {
 protected:
  std::unique_ptr<store::MemoryStore> open() {
    auto store = store::MemoryStore::open({.keys = 2'000, .log_bytes = 1 << 18, .file = path_}, clock_);
    EXPECT_TRUE(store) << store.error().message;
    return store ? *std::move(store) : nullptr;
  }

  // Some requests of random keys and costs under every limit; a reset gives blocks to other keys.
  void charge_some(store::MemoryStore& store, std::mt19937_64& random) {
    for (int i = 0; i < 600; ++i) {
      clock_->advance(Micros{pick(random, 0, 1'000'000)});
      const std::int64_t now = clock_->now().count();
      const Limit& limit = limits_[static_cast<std::size_t>(pick(random, 0, 3))];
      const std::string key = key_of(static_cast<int>(pick(random, 0, kKeys - 1)));
      if (pick(random, 0, 9) == 0) {
        ASSERT_TRUE(store.reset(key, now));
      } else if (limit.algorithm == Algorithm::concurrency) {
        ASSERT_TRUE(store.acquire({key, &limit, 1}, std::to_string(i), now));
      } else {
        ASSERT_TRUE(store.check({key, &limit, pick(random, 1, limit.permits / 2)}, now));
      }
    }
  }

  // What a key still admits, all at one time.
  std::int64_t admitted_now(store::MemoryStore& store, const std::string& key, const Limit& limit) {
    const std::int64_t now = clock_->now().count();
    const std::int64_t piece = std::max<std::int64_t>(1, limit.permits / 10);
    std::int64_t admitted = 0;
    for (int i = 0; i < 64; ++i) {
      const auto decision = limit.algorithm == Algorithm::concurrency
                                ? store.acquire({key, &limit, piece}, "after" + std::to_string(i), now)
                                : store.check({key, &limit, piece}, now);
      if (!decision) {  // a request that meets damage gets an error, and admits nothing
        EXPECT_NE(decision.error().message.find("damaged"), std::string::npos) << decision.error().message;
        return admitted;
      }
      if (!decision->allowed) return admitted;
      admitted += piece;
    }
    return admitted;
  }

  static std::string key_of(int i) { return "key:" + std::to_string(i); }

  const base::TestFolder folder_;
  const std::string path_ = folder_.at("state");
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  const Limit limits_[4] = {
      *algorithm::make_window(Algorithm::sliding_log, 100, kHour),
      *algorithm::make_window(Algorithm::sliding_window, 40'000'000'000, kHour),  // too large for a slot
      *algorithm::make_bucket(Algorithm::token_bucket, 10, kHour, 10),
      *algorithm::make_window(Algorithm::concurrency, 10, kHour)};
};

TEST_F(PowerLoss, GivesNoKeyMoreThanItsLimitOnceMore) {
  auto random = seeded();
  for (int round = 0; round < 30; ++round) {
    std::remove(path_.c_str());
    std::string first, second;
    {
      const auto store = open();
      charge_some(*store, random);
      first = read_file(path_);
      charge_some(*store, random);
      second = read_file(path_);
    }
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t at = 0; at < second.size(); at += kPageBytes) {
      if (pick(random, 0, 1) == 0) std::memcpy(&second[at], &first[at], std::min(kPageBytes, second.size() - at));
    }
    second[offsetof(table::Header, boot_id)] ^= 1;
    folder_.write("state", second);
    ASSERT_TRUE(read_file(path_) == second);
    const auto store = open();
    ASSERT_NE(store, nullptr);
    for (const Limit& limit : limits_) {
      for (int i = 0; i < kKeys; ++i) {
        EXPECT_LE(admitted_now(*store, key_of(i), limit), limit.permits) << key_of(i) << ", round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace weir::test
