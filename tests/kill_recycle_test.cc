// Numbers of limits are reused all the time while processes are killed: no number is read as its old limit.
//
// Processes share a state file and use more different limits than there are numbers, so the sweep frees numbers all the
// time. At random moments the test kills one and starts another. It checks every answer:
//
//   - A key of a rule admits no more than its limit. At the end it has used what was admitted, plus the requests in
//     doubt: at most one for each killed thread.
//   - A key of one thread alone has used exactly what that thread charged, under its limit.
//   - A key of all threads, each time under another version of its limit, has used what all have charged.
//
// A state read by a wrong limit shows at once: the limits differ in period, capacity and packing. schedule_recycle.cc
// does the same under chosen interleavings. WEIR_SEED=n repeats the plan, not each moment.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "algorithm/limit.h"
#include "processes.h"
#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

constexpr std::int64_t kHour = 3'600'000'000, kMonth = 720 * kHour;
constexpr std::size_t kRules = 3, kThreads = 2, kLivesMax = 40, kAtOnce = 3;

const Limit& rule(std::size_t i) {
  static const std::array<Limit, kRules> all{
      algorithm::make_window(Algorithm::fixed_window, 60, kMonth).value(),
      algorithm::make_bucket(Algorithm::token_bucket, 900, kMonth, 900).value(),
      algorithm::make_window(Algorithm::sliding_window, 1'000'000, kMonth).value()};
  return all[i];
}

// What a thread notes about its requests to rules: before each request, and after its answer.
struct Diary {
  std::array<std::atomic<std::int64_t>, kRules> begun, done, admitted;
  std::atomic<std::uint64_t> requests;
  char complaint[200];
};

struct World {
  std::atomic<std::int64_t> time;  // every request takes a microsecond
  std::atomic<bool> is_over;
  std::atomic<std::int64_t> common_begun, common_done;  // charges to the key that all use
  Diary diaries[kLivesMax][kThreads];
};

class Writer {
 public:
  Writer(store::MemoryStore& store, World& world, Diary& diary, std::string name, std::uint64_t seed)
      : store_(store), world_(world), diary_(diary), name_(std::move(name)), dice_(seed) {}

  bool run() {
    for (Kept& one : kept_) renew(one);
    while (!world_.is_over && diary_.complaint[0] == 0) {
      act();
      diary_.requests.fetch_add(1);
    }
    return diary_.complaint[0] == 0;
  }

 private:
  // A key of this thread alone, with its own limit.
  struct Kept {
    std::string key{};
    Limit limit{};
    std::int64_t used = 0;
  };

  std::int64_t now() { return SharedClock::kStart + ++world_.time; }
  void complain(const std::string& text) {
    if (diary_.complaint[0] == 0) std::strncpy(diary_.complaint, text.c_str(), sizeof(diary_.complaint) - 1);
  }

  // Almost always a limit that no request has used before, of a random packing.
  Limit some_limit() {
    const std::int64_t permits = pick(dice_, 0, 1) == 0 ? pick(dice_, 100, 2'000) : pick(dice_, 2'000, 4'000'000);
    const std::int64_t few = permits % 1'000 + 50;
    switch (pick(dice_, 0, 3)) {
      case 0:
        return algorithm::make_window(Algorithm::sliding_window, permits, kHour * pick(dice_, 1, 24)).value();
      case 1:
        return algorithm::make_bucket(Algorithm::leaky_meter, few, kMonth, few).value();
      case 2:
        return algorithm::make_bucket(Algorithm::token_bucket, few, kMonth - permits, few).value();
      default:
        return algorithm::make_window(Algorithm::fixed_window, permits, kHour * pick(dice_, 1, 24)).value();
    }
  }

  void act() {
    const std::int64_t what = pick(dice_, 0, 99);
    if (what < 20) {
      check_rule(static_cast<std::size_t>(pick(dice_, 0, kRules - 1)));
    } else if (what < 30) {
      check_common();
    } else if (what < 50) {
      Kept& one = kept_[below(dice_, kept_.size())];
      check(one);
      if (one.used > 40) renew(one);
    } else if (what < 98) {
      Kept once;
      renew(once);
      check(once);
      forget(once);
    } else {
      store_.table().sweep(now(), 10'000);
    }
  }

  void renew(Kept& one) {
    if (!one.key.empty()) forget(one);
    one = {name_ + std::to_string(next_++), some_limit(), 0};
  }
  void forget(const Kept& one) {
    if (const auto was_there = store_.reset(one.key, now()); !was_there) complain(was_there.error().message);
  }
  void check(Kept& one) {
    const std::int64_t cost = pick(dice_, 1, 3);
    const auto decision = store_.check({.key = one.key, .limit = &one.limit, .cost = cost}, now());
    if (!decision) return complain(decision.error().message);
    one.used += cost;
    if (decision->allowed && decision->limit == one.limit.capacity &&
        decision->remaining == one.limit.capacity - one.used) {
      return;
    }
    complain("a key used " + std::to_string(one.used) + " of " + std::to_string(one.limit.capacity) + " and is told " +
             std::to_string(decision->remaining) + " of " + std::to_string(decision->limit) + " are left");
  }

  void check_rule(std::size_t i) {
    diary_.begun[i].fetch_add(1);
    const auto decision =
        store_.check({.key = "rule" + std::to_string(i), .limit = &rule(i), .family = 100 + i}, now());
    if (!decision) return complain("a rule: " + decision.error().message);
    if (decision->allowed) diary_.admitted[i].fetch_add(1);
    diary_.done[i].fetch_add(1);
    if (decision->limit != rule(i).capacity) complain("a rule has the limit " + std::to_string(decision->limit));
  }

  // Its versions have one period, and more permits than are ever asked for.
  void check_common() {
    const Limit version =
        algorithm::make_window(Algorithm::fixed_window, pick(dice_, 10'000'000, 90'000'000), kMonth).value();
    const std::int64_t before = world_.common_done.load();
    world_.common_begun.fetch_add(1);
    const auto decision = store_.check({.key = "common", .limit = &version}, now());
    if (!decision) return complain("the common key: " + decision.error().message);
    world_.common_done.fetch_add(1);
    const std::int64_t used = version.capacity - decision->remaining, most = world_.common_begun.load();
    if (decision->allowed && decision->limit == version.capacity && used > before && used <= most) return;
    complain("the common key: " + std::to_string(used) + " used, " + std::to_string(before) + " to " +
             std::to_string(most) + " charged");
  }

  store::MemoryStore& store_;
  World& world_;
  Diary& diary_;
  const std::string name_;
  std::mt19937_64 dice_;
  std::array<Kept, 8> kept_;
  std::uint64_t next_ = 0;
};

std::unique_ptr<store::MemoryStore> open(const std::string& file, const World& world) {
  return store::MemoryStore::open({.keys = 3'000, .log_bytes = 4 << 20, .file = file},
                                  std::make_shared<SharedClock>(world.time))
      .value();
}

bool write(World& world, const std::string& file, std::size_t life, std::uint64_t seed) {
  const auto store = open(file, world);
  std::atomic<bool> is_well{true};
  on_threads(kThreads, [&](std::size_t i) {
    const std::string name = std::to_string(life) + "/" + std::to_string(i) + "/";
    if (!Writer(*store, world, world.diaries[life][i], name, seed + i).run()) is_well = false;
  });
  return is_well;
}

// A file from its first process to its last.
class Round {
 public:
  explicit Round(std::uint64_t seed) : file_(folder_.at("state")), dice_(seed) {}

  void run(std::uint64_t& kills, std::uint64_t& epochs) {
    auto store = open(file_, *world_);
    const bool is_left_alone = pick(dice_, 0, 1) == 0;  // all processes are killed; the next one repairs the file
    if (is_left_alone) store.reset();
    for (std::size_t i = 0; i < kAtOnce; ++i) running_.push_back(start_life());
    while (lives_.size() < kLivesMax) {
      const std::uint64_t until = requests() + static_cast<std::uint64_t>(pick(dice_, 100, 4'000));
      ASSERT_TRUE(wait_until([&] { return requests() >= until || !complaints().empty(); }));
      ASSERT_EQ(complaints(), "");
      auto& victim = running_[static_cast<std::size_t>(pick(dice_, 0, kAtOnce - 1))];
      lives_[victim].kill();
      EXPECT_TRUE(lives_[victim].join());
      ++kills;
      victim = start_life();
    }
    if (is_left_alone) {
      for (const std::size_t life : running_) lives_[life].kill();
      kills += kAtOnce;
    }
    world_->is_over = true;
    for (const std::size_t life : running_) EXPECT_TRUE(lives_[life].join());
    EXPECT_EQ(complaints(), "");
    if (!store) store = open(file_, *world_);
    examine(*store);
    epochs += store->table().region().header().limits_epoch;
  }

 private:
  std::size_t start_life() {
    const std::size_t life = lives_.size();
    const std::uint64_t seed = dice_();
    lives_.emplace_back([this, life, seed] { return write(*world_, file_, life, seed); });
    return life;
  }
  std::uint64_t requests() const {
    std::uint64_t sum = 0;
    for (const auto& diaries : world_->diaries) {
      for (const Diary& diary : diaries) sum += diary.requests;
    }
    return sum;
  }
  std::string complaints() const {
    std::string all;
    for (const auto& diaries : world_->diaries) {
      for (const Diary& diary : diaries) all += diary.complaint;
    }
    return all;
  }

  void examine(store::MemoryStore& store) const {
    while (!store.table().sweep(store.clock().now().count(), 10'000)) continue;
    EXPECT_EQ(faults_of(store.table().region(), Rest::all_recovered), "");
    for (std::size_t i = 0; i < kRules; ++i) {
      std::int64_t admitted = 0, in_doubt = 0;
      for (const auto& diaries : world_->diaries) {
        for (const Diary& diary : diaries) {
          admitted += diary.admitted[i];
          in_doubt += diary.begun[i] - diary.done[i];
        }
      }
      const std::string key = "rule" + std::to_string(i);
      const auto seen =
          store.check({.key = key, .limit = &rule(i), .cost = 0, .family = 100 + i}, store.clock().now().count());
      ASSERT_TRUE(seen) << seen.error().message;
      EXPECT_LE(admitted, rule(i).capacity);
      EXPECT_GE(seen->limit - seen->remaining, admitted) << "rule " << i;
      EXPECT_LE(seen->limit - seen->remaining, admitted + in_doubt) << "rule " << i;
    }
    EXPECT_EQ(store.counters().evicted, 0u);
  }

  const base::TestFolder folder_;
  const std::string file_;
  std::mt19937_64 dice_;
  const Shared<World> world_;
  std::vector<Process> lives_;
  std::vector<std::size_t> running_;
};

void play(std::uint64_t rounds) {
  const std::uint64_t seed = base_seed();
  std::uint64_t kills = 0, epochs = 0;
  for (std::uint64_t i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("WEIR_SEED=" + std::to_string(seed + i));
    Round(seed + i).run(kills, epochs);
  }
  std::cout << kills << " kills, " << epochs << " epochs of numbers\n";
  EXPECT_GT(epochs, 4 * rounds) << "no number was reused";
}

TEST(KillRecycle, ReadsNoNumberAsItsOldLimit) { play(2); }
TEST(KillRecycleLong, ReadsNoNumberAsItsOldLimit) { play(200); }

}  // namespace
}  // namespace weir::test
