// Power loss: each 4 KiB of a state file is as old as the system last wrote it, so a slot and its block may be of
// different times. What may follow is bounded: no key admits more than its limit once more, and nothing crashes.
//
// The bytes of one file at two moments are mixed at random and opened as another boot would. Keys with a block (logs,
// permits in flight, limits too large for a slot) are the interesting ones: their block may hold an older state of
// theirs, or that of a key that had the block before.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithm/limit.h"
#include "seed.h"
#include "store/memory_store.h"
#include "table/layout.h"

namespace weir::test {
namespace {

constexpr std::int64_t kNow = 1'794'701'843'991'953, kHour = 3'600'000'000;
constexpr std::size_t kPageBytes = 4'096;
constexpr int kKeys = 40;

class PowerLoss : public ::testing::Test {
 protected:
  ~PowerLoss() override { std::remove(path_.c_str()); }

  std::unique_ptr<MemoryStore> open() {
    auto store = MemoryStore::open({.keys = 2'000, .log_bytes = 1 << 18, .file = path_}, clock_);
    EXPECT_TRUE(store) << store.error().message;
    return store ? *std::move(store) : nullptr;
  }

  std::string bytes() const {
    std::string out;
    const int fd = ::open(path_.c_str(), O_RDONLY);
    out.resize(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)));
    EXPECT_EQ(pread(fd, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
    close(fd);
    return out;
  }
  void write(const std::string& bytes) const {
    const int fd = ::open(path_.c_str(), O_RDWR | O_TRUNC);
    EXPECT_EQ(pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    close(fd);
  }

  // Some requests of random keys and costs under every limit; a reset gives blocks to other keys.
  void charge_some(MemoryStore& store, std::mt19937_64& random) {
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

  // All that a key is still given, at one moment.
  std::int64_t admitted_now(MemoryStore& store, const std::string& key, const Limit& limit) {
    const std::int64_t now = clock_->now().count();
    const std::int64_t piece = std::max<std::int64_t>(1, limit.permits / 10);
    std::int64_t admitted = 0;
    for (int i = 0; i < 64; ++i) {
      const auto decision = limit.algorithm == Algorithm::concurrency
                                ? store.acquire({key, &limit, piece}, "after" + std::to_string(i), now)
                                : store.check({key, &limit, piece}, now);
      if (!decision) {  // damage that is met is an error for the request, which admits nothing
        EXPECT_NE(decision.error().message.find("damaged"), std::string::npos) << decision.error().message;
        return admitted;
      }
      if (!decision->allowed) return admitted;
      admitted += piece;
    }
    return admitted;
  }

  static std::string key_of(int i) { return "key:" + std::to_string(i); }

  const std::string path_ = ::testing::TempDir() + "weir_power." + std::to_string(getpid());
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  const Limit limits_[4] = {*make_window(Algorithm::sliding_log, 100, kHour),
                            *make_window(Algorithm::sliding_window, 40'000'000'000, kHour),  // too large for a slot
                            *make_bucket(Algorithm::token_bucket, 10, kHour, 10),
                            *make_window(Algorithm::concurrency, 10, kHour)};
};

TEST_F(PowerLoss, GivesNoKeyMoreThanItsLimitOnceMore) {
  auto random = seeded();
  for (int round = 0; round < 30; ++round) {
    std::remove(path_.c_str());
    std::string first, second;
    {
      const auto store = open();
      charge_some(*store, random);
      first = bytes();
      charge_some(*store, random);
      second = bytes();
    }
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t at = 0; at < second.size(); at += kPageBytes) {
      if (pick(random, 0, 1) == 0) std::memcpy(&second[at], &first[at], std::min(kPageBytes, second.size() - at));
    }
    second[offsetof(table::Header, boot_id)] ^= 1;
    write(second);
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
