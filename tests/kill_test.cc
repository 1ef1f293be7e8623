// The test kills and stops writers at random moments, thousands of times. The others go on, and all counts are right.
//
// Each writer notes each request in shared memory, and after the answer what it charged. If a writer is killed, at most
// one request of each of its threads is in doubt. Afterwards no word is held, every block has one owner, and some
// choice of the requests in doubt explains exactly what each key has used. If the table is too small for its keys, an
// evicted key has used at least what was charged to it. If only the arena is too small, logs become two counts and logs
// again, and all counts are still exact.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "algorithm/limit.h"
#include "jolt.h"
#include "processes.h"
#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

constexpr std::int64_t kDay = 86'400'000'000;
constexpr std::size_t kKeys = 12, kKeysAtOnce = 5;
constexpr std::size_t kLivesMax = 20, kThreadsMax = 2;

// The counted keys recover so slowly that no permit expires during the test. Some are in their slot, some in a block,
// and logs have both formats and grow.
const std::array<Limit, kKeys>& limits() {
  static const std::array<Limit, kKeys> all{{
      algorithm::make_bucket(Algorithm::token_bucket, 60, 30 * kDay, 60).value(),
      algorithm::make_bucket(Algorithm::leaky_bucket, 460, 30 * kDay, 460).value(),
      algorithm::make_bucket(Algorithm::leaky_meter, 900, 30 * kDay, 900).value(),
      algorithm::make_window(Algorithm::fixed_window, 300, 30 * kDay).value(),
      algorithm::make_window(Algorithm::fixed_window, 1'000'000'000'000, 300'000'000).value(),
      algorithm::make_window(Algorithm::sliding_window, 200, 30 * kDay).value(),
      algorithm::make_window(Algorithm::sliding_window, 100'000'000'000, kDay).value(),
      algorithm::make_window(Algorithm::sliding_log, 300, 1'800'000'000).value(),
      algorithm::make_window(Algorithm::sliding_log, 2'000, 30 * kDay).value(),
      algorithm::make_bucket(Algorithm::token_bucket, 5'000, 30 * kDay, 5'000).value(),
      algorithm::make_window(Algorithm::concurrency, 50, kDay).value(),
      algorithm::make_window(Algorithm::concurrency, 20, kDay).value(),
  }};
  return all;
}

// Wild keys expire within microseconds or are reset, and the test does not count them.
const Limit& wild_limit(std::int64_t i) {
  static const Limit all[] = {algorithm::make_bucket(Algorithm::token_bucket, 900, 2'000, 900).value(),
                              algorithm::make_window(Algorithm::fixed_window, 900, 2'000).value(),
                              algorithm::make_window(Algorithm::sliding_window, 900, 2'000).value(),
                              algorithm::make_window(Algorithm::sliding_log, 900, 2'000).value(),
                              algorithm::make_bucket(Algorithm::leaky_meter, 700, kDay, 700).value(),
                              algorithm::make_window(Algorithm::fixed_window, 700, kDay).value(),
                              algorithm::make_window(Algorithm::sliding_log, 900, kDay).value()};
  return all[i];
}

// What a request changes if it takes effect.
struct Op {
  std::array<std::int64_t, kKeys> change{};
  bool is_release = false;
};

// The diary of a thread. A request is in doubt if it was begun and is not done. The lowest bit of `done`
// selects the valid one of the two tallies, so both change as one.
struct Diary {
  std::atomic<std::uint64_t> begun, done;
  Op op;
  std::array<std::int64_t, kKeys> tally[2];
  char complaint[200];

  bool is_in_doubt() const { return begun != done; }
  void begin(const Op& next) {
    op = next;
    begun = done + 1;
  }
  void end(bool allowed) {
    auto& next = tally[(done + 1) % 2];
    next = tally[done % 2];
    for (std::size_t k = 0; allowed && k < kKeys; ++k) next[k] += op.change[k];
    ++done;
  }
};

struct World {
  std::atomic<std::int64_t> time;  // every request takes a microsecond
  std::atomic<bool> over;
  Diary diaries[kLivesMax][kThreadsMax];
};

struct Plan {
  std::string file, prefix;  // of the keys of this round
  bool is_tiny = false;      // one page and a small arena: keys evict each other
  bool is_tight = false;     // many slots and a small arena: logs become counts
  std::uint64_t seed = 0;
  std::int64_t time = 0;  // when it begins
};

// A writer may also kill or stop itself, in the middle of the table's work, if its table was built for that.
Jolts random_jolts(std::mt19937_64& dice) {
  Jolts jolts{.solo_tries = static_cast<unsigned>(pick(dice, 0, 2)), .spins = static_cast<unsigned>(pick(dice, 0, 8))};
  if (pick(dice, 0, 1) == 0) jolts.kill_in = static_cast<std::uint32_t>(pick(dice, 500, 50'000));
  if (pick(dice, 0, 1) == 0) jolts.stop_in = static_cast<std::uint32_t>(pick(dice, 2'000, 50'000));
  if (pick(dice, 0, 1) == 0) jolts.yield_in = static_cast<std::uint32_t>(pick(dice, 10, 1'000));
  return jolts;
}

// One thread of a writer.
class Writer {
 public:
  Writer(store::MemoryStore& store, World& world, Diary& diary, const Plan& plan, std::uint64_t who)
      : store_(store), world_(world), diary_(diary), plan_(plan), who_(who), dice_(plan.seed * 1'000 + who) {}

  bool run() {
    set_jolts(random_jolts(dice_), dice_());
    while (!world_.over && diary_.complaint[0] == 0) act();
    return diary_.complaint[0] == 0;
  }

 private:
  static std::string key(const Plan& plan, std::size_t k) { return plan.prefix + std::to_string(k); }
  std::int64_t now() { return SharedClock::kStart + ++world_.time; }
  bool chance(int of) { return pick(dice_, 1, of) == 1; }
  std::string fresh_id() { return plan_.prefix + std::to_string(who_) + "/" + std::to_string(++ids_); }

  void act() {
    if (plan_.is_tight && chance(3)) return be_wild();  // to fill the arena
    switch (pick(dice_, 0, 9)) {
      case 0:
        return give_back();
      case 1:
        return acquire();
      case 2:
        return release();
      case 3:
        return reserve_or_commit();
      case 4:
        return be_wild();
      default:
        return charge();
    }
  }

  // Runs a request between its two notes. An error is a denial where the table is too small, and else a complaint.
  template <class Request>
  bool note(const Op& op, const Request& request) {
    diary_.begin(op);
    const auto answer = request();
    const bool allowed = answer && allows(*answer);
    const bool tolerated = answer ||
                           (plan_.is_tiny && (answer.error().code == ErrorCode::exhausted ||
                                              answer.error().code == ErrorCode::not_found)) ||
                           (plan_.is_tight && op.is_release && answer.error().code == ErrorCode::exhausted);
    if (!tolerated) std::strncpy(diary_.complaint, answer.error().message.c_str(), sizeof(diary_.complaint) - 1);
    diary_.end(allowed);
    return allowed;
  }
  static bool allows(const Verdict& verdict) { return verdict.allowed; }
  static bool allows(const Decision& decision) { return decision.allowed; }
  static bool allows(bool answer) { return answer; }

  // Some keys in any order, with their costs. Their names are in names_.
  std::vector<Charge> some_charges(Op& op, std::size_t most) {
    std::vector<std::size_t> order{0, 1, 2, 3, 5, 7, 8, 9};
    if (!plan_.is_tight) order.insert(order.end(), {4, 6});  // without a block these would be evicted
    std::shuffle(order.begin(), order.end(), dice_);
    std::vector<Charge> charges;
    const auto count = static_cast<std::size_t>(pick(dice_, 1, static_cast<std::int64_t>(most)));
    for (std::size_t i = 0; i < count; ++i) {
      op.change[order[i]] = pick(dice_, 1, 3);
      names_[i] = key(plan_, order[i]);
      charges.push_back({names_[i], &limits()[order[i]], op.change[order[i]]});
    }
    return charges;
  }

  void charge() {
    Op op;
    const auto charges = some_charges(op, kKeysAtOnce);
    const std::string id = chance(100) ? fresh_id() : "";
    const bool allowed =
        note(op, [&] { return store_.charge(charges, now(), {.name = id, .lasts = Micros{1'000'000}}); });
    if (allowed) {
      for (std::size_t k = 0; k < kKeys; ++k) own_[k] += op.change[k];
    }
    if (id.empty() || !allowed || plan_.is_tiny) return;
    // Once more under the same id: allowed, and nothing is charged.
    if (!note({}, [&] { return store_.charge(charges, now(), {.name = id, .lasts = Micros{1'000'000}}); })) {
      std::strcpy(diary_.complaint, "a repeated request was denied");
    }
  }

  // Refunds only what this thread has charged, so never more than was used.
  void give_back() {
    const auto k = static_cast<std::size_t>(pick(dice_, 0, 9));
    // A refund removes the newest event of a log, which may be that of a reservation. Then settling it would refund
    // nothing.
    const bool is_log = limits()[k].algorithm == Algorithm::sliding_log;
    if (plan_.is_tiny || own_[k] < 1 || is_log) return;
    const std::int64_t permits = pick(dice_, 1, std::min<std::int64_t>(own_[k], 40));
    Op op;
    op.change[k] = -permits;
    const std::string name = key(plan_, k);
    own_[k] -= permits;
    note(op, [&] { return store_.check({name, &limits()[k], -permits}, now()); });
  }

  void acquire() {
    const auto k = static_cast<std::size_t>(pick(dice_, 10, 11));
    Op op;
    op.change[k] = pick(dice_, 1, 3);
    const std::string name = key(plan_, k), id = fresh_id();
    if (note(op, [&] { return store_.acquire({name, &limits()[k], op.change[k]}, id, now()); })) {
      held_.push_back({id, k, op.change[k]});
    }
  }

  void release() {
    if (held_.empty()) return;
    std::swap(held_.back(), held_[below(dice_, held_.size())]);
    const Held held = held_.back();
    held_.pop_back();
    Op op{.is_release = true};
    op.change[held.key] = -held.cost;
    note(op, [&] { return store_.release(key(plan_, held.key), held.id, now()); });
  }

  void reserve_or_commit() {
    if (reserved_id_.empty()) {
      reserved_ = {};
      auto charges = some_charges(reserved_, 3);
      const std::string id = fresh_id();
      if (note(reserved_, [&] { return store_.reserve(charges, id, Micros{kDay}, now()); })) reserved_id_ = id;
      return;
    }
    Op op;
    std::vector<Charge> charges;
    for (std::size_t k = 0; k < kKeys; ++k) {
      if (reserved_.change[k] == 0) continue;
      // A bucket keeps what may have drained since, a fraction of a permit; several fractions could add up to a permit.
      // A log that was two counts meanwhile may not have the event.
      const bool may_miss = plan_.is_tight && limits()[k].algorithm == Algorithm::sliding_log;
      const bool is_exact = !plan_.is_tiny && !algorithm::is_bucket(limits()[k].algorithm) && !may_miss;
      const std::int64_t actual = is_exact ? pick(dice_, 0, reserved_.change[k]) : reserved_.change[k];
      op.change[k] = actual - reserved_.change[k];
      names_[charges.size()] = key(plan_, k);
      charges.push_back({names_[charges.size()], &limits()[k], actual});
    }
    const std::string id = std::exchange(reserved_id_, {});
    note(op, [&] { return store_.commit(charges, id, now()); });
  }

  void be_wild() {
    const std::int64_t kind = plan_.is_tight && chance(2) ? 6 : pick(dice_, 0, plan_.is_tiny ? 5 : 3);
    const std::string name = "wild" + std::to_string(pick(dice_, 0, kind == 3 ? 20 : 400));
    const Limit& limit = wild_limit(kind);
    if (chance(20)) return sweep();
    if (chance(5)) {
      note({}, [&] { return store_.reset(name, now()); });
      return;
    }
    const std::string other = name + "'";
    const Charge charges[] = {{name, &limit, pick(dice_, -1, 3)}, {other, &limit, pick(dice_, 1, 2)}};
    note({}, [&] { return store_.charge(charges, now()); });
  }

  void sweep() {
    diary_.begin({});
    store_.table().sweep(now(), static_cast<std::uint64_t>(pick(dice_, 1, 20)));
    diary_.end(true);
  }

  struct Held {
    std::string id;
    std::size_t key;
    std::int64_t cost;
  };

  store::MemoryStore& store_;
  World& world_;
  Diary& diary_;
  const Plan& plan_;
  const std::uint64_t who_;
  std::mt19937_64 dice_;
  std::uint64_t ids_ = 0;
  std::array<std::int64_t, kKeys> own_{};
  std::array<std::string, kKeysAtOnce> names_;
  std::vector<Held> held_;
  Op reserved_;
  std::string reserved_id_;
};

bool write(World& world, const Plan& plan, std::size_t life, std::size_t threads) {
  const auto store = store::MemoryStore::open({.file = plan.file}, std::make_shared<SharedClock>(world.time));
  if (!store) {
    std::strncpy(world.diaries[life][0].complaint, store.error().message.c_str(), 199);
    return false;
  }
  std::atomic<bool> well{true};
  on_threads(threads, [&](std::size_t i) {
    if (!Writer(**store, world, world.diaries[life][i], plan, life * kThreadsMax + i).run()) well = false;
  });
  return well;
}

// The parent ----------------------------------------------------------------------------------------------------------

struct Totals {
  std::uint64_t kills = 0, stops = 0, requests = 0, in_doubt = 0, in_effect = 0, evicted = 0, compacted = 0;
};

class Round {
 public:
  // How the parent looks at the table: it had it open all the time; it closed it last, after others had died; or all
  // users were killed, and it opens and repairs the file.
  enum class End : std::uint8_t { in_use, closed, repaired };

  Round(Plan plan, End end, Totals& totals) : plan_(std::move(plan)), end_(end), totals_(totals), dice_(plan_.seed) {}

  // The time when it ends.
  std::int64_t run() {
    world_->time = plan_.time;
    auto store = open();
    if (end_ == End::repaired) store.reset();
    for (int i = 0; i < 3; ++i) start();
    const std::int64_t actions = pick(dice_, 6, 16);
    for (std::int64_t i = 0; i < actions && !::testing::Test::HasFatalFailure(); ++i) act();
    finish();
    if (end_ == End::closed) store.reset();
    if (!store) store = open();
    examine(*store);
    return world_->time;
  }

 private:
  struct Life {
    Process process;
    std::size_t threads;
    Process::State state = Process::State::running;
  };

  std::unique_ptr<store::MemoryStore> open() {
    const std::size_t keys = plan_.is_tiny ? 1 : 20'000;  // of 50 rounds
    const std::size_t bytes = plan_.is_tiny ? 0 : plan_.is_tight ? 4 << 10 : 4 << 20;
    return store::MemoryStore::open({.keys = keys, .log_bytes = bytes, .file = plan_.file},
                                    std::make_shared<SharedClock>(world_->time))
        .value();
  }

  void start() {
    if (lives_.size() == kLivesMax) return;
    const std::size_t life = lives_.size();
    const auto threads = static_cast<std::size_t>(pick(dice_, 1, kThreadsMax));
    lives_.push_back({Process([&, life, threads] { return write(*world_, plan_, life, threads); }), threads});
  }

  std::uint64_t done(std::size_t life) const {
    std::uint64_t least = UINT64_MAX;
    for (std::size_t i = 0; i < lives_[life].threads; ++i)
      least = std::min<std::uint64_t>(least, world_->diaries[life][i].done);
    return least;
  }
  std::uint64_t done() const {
    std::uint64_t sum = 0;
    for (const auto& diaries : world_->diaries) sum += diaries[0].done + diaries[1].done;
    return sum;
  }

  // Whether a child runs now. Also notes children that killed or stopped themselves.
  bool is_running(Life& life) {
    const auto before = std::exchange(life.state, life.process.look());
    if (before != Process::State::ended && life.state == Process::State::ended && !world_->over) ++totals_.kills;
    if (before == Process::State::running && life.state == Process::State::stopped) ++totals_.stops;
    return life.state == Process::State::running;
  }
  // A random child that runs and has made a request.
  Life* anyone() {
    std::vector<Life*> found;
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (is_running(lives_[i]) && done(i) > 0) found.push_back(&lives_[i]);
    }
    if (found.empty()) return nullptr;
    return found[below(dice_, found.size())];
  }
  bool is_anyone_running() {
    return std::any_of(lives_.begin(), lives_.end(), [this](Life& life) { return is_running(life); });
  }

  void act() {
    if (!is_anyone_running()) wake_all();
    const std::uint64_t until = done() + static_cast<std::uint64_t>(pick(dice_, 0, 300));
    ASSERT_TRUE(wait_until([&] { return done() >= until || !is_anyone_running(); })) << complaints();
    ASSERT_EQ(complaints(), "");
    Life* life = anyone();
    const std::int64_t what = pick(dice_, 0, 9);
    if (life != nullptr && what < 5) {
      life->process.kill();
      start();
    } else if (life != nullptr && what < 9) {
      stop(*life);
    } else {
      wake_all();
    }
  }

  // While one child is stopped, wherever that is, every thread of the others goes on.
  void stop(Life& life) {
    life.process.stop();
    is_running(life);
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (!is_running(lives_[i]) || done(i) == 0) continue;
      const std::uint64_t until = done(i) + 20;
      ASSERT_TRUE(wait_until([&] { return done(i) >= until || !is_running(lives_[i]) || !complaints().empty(); }))
          << "a child waits for one that was stopped";
    }
  }

  void wake_all() {
    for (Life& life : lives_) {
      if (is_running(life)) continue;
      if (pick(dice_, 0, 2) == 0) life.process.kill();
      life.process.go_on();
    }
    if (!is_anyone_running()) start();
  }

  void finish() {
    const bool all_die = end_ == End::repaired || pick(dice_, 0, 1) == 0;
    world_->over = !all_die;
    for (Life& life : lives_) {
      if (all_die) life.process.kill();
      // A child that stops itself again is continued again.
      ASSERT_TRUE(wait_until([&] {
        if (!is_running(life)) life.process.go_on();
        return life.state == Process::State::ended;
      }));
      EXPECT_TRUE(life.process.join());
    }
    EXPECT_EQ(complaints(), "");
  }

  std::string complaints() const {
    std::string all;
    for (const auto& diaries : world_->diaries) all += std::string(diaries[0].complaint) + diaries[1].complaint;
    return all;
  }

  std::int64_t spent(store::MemoryStore& store, std::size_t k) {
    const std::string name = plan_.prefix + std::to_string(k);
    const Charge peek{name, &limits()[k], 0};
    const std::int64_t now = store.clock().now().count();
    const auto decision =
        limits()[k].algorithm == Algorithm::concurrency ? store.acquire(peek, "", now) : store.check(peek, now);
    EXPECT_TRUE(decision) << decision.error().message;
    return decision ? decision->limit - decision->remaining : 0;
  }

  void examine(store::MemoryStore& store) {
    EXPECT_EQ(complaints(), "");
    std::array<std::int64_t, kKeys> missing;
    // A sweep or a peek ends the requests of killed writers. A peek may bring a request into effect after a peek of
    // another key, so the test reads all keys again after the sweep.
    if (pick(dice_, 0, 1) == 0) {
      for (std::size_t k = 0; k < kKeys; ++k) spent(store, k);
    }
    while (!store.table().sweep(SharedClock::kStart, 1'000)) continue;
    for (std::size_t k = 0; k < kKeys; ++k) missing[k] = spent(store, k);
    EXPECT_EQ(faults_of(store.table().region(), Rest::all_recovered), "");
    std::vector<Op> doubts;
    for (const auto& diaries : world_->diaries) {
      for (const Diary& diary : diaries) {
        totals_.requests += diary.done;
        if (diary.is_in_doubt()) doubts.push_back(diary.op);
        for (std::size_t k = 0; k < kKeys; ++k) missing[k] -= diary.tally[diary.done % 2][k];
      }
    }
    totals_.in_doubt += doubts.size();
    if (plan_.is_tiny) return examine_evicted(missing, doubts, store.counters());
    EXPECT_EQ(store.counters().evicted, 0u);
    totals_.compacted += store.counters().compacted;
    std::uint64_t in_effect = 0;
    EXPECT_TRUE(explain(missing, doubts, 0, in_effect))
        << "no choice of " << doubts.size() << " requests in doubt explains " << ::testing::PrintToString(missing);
    totals_.in_effect += in_effect;
  }

  // Whether some of the requests in doubt add up to exactly what is missing.
  static bool explain(const std::array<std::int64_t, kKeys>& missing, const std::vector<Op>& doubts, std::size_t next,
                      std::uint64_t& in_effect) {
    std::array<std::int64_t, kKeys> low{}, high{};
    for (std::size_t i = next; i < doubts.size(); ++i) {
      for (std::size_t k = 0; k < kKeys; ++k) (doubts[i].change[k] < 0 ? low : high)[k] += doubts[i].change[k];
    }
    for (std::size_t k = 0; k < kKeys; ++k) {
      if (missing[k] < low[k] || missing[k] > high[k]) return false;
    }
    if (next == doubts.size()) return true;
    if (explain(missing, doubts, next + 1, in_effect)) return true;
    auto less = missing;
    for (std::size_t k = 0; k < kKeys; ++k) less[k] -= doubts[next].change[k];
    if (!explain(less, doubts, next + 1, in_effect)) return false;
    ++in_effect;
    return true;
  }

  // An evicted key has used what was charged, or more: no permit was freed.
  void examine_evicted(const std::array<std::int64_t, kKeys>& missing, const std::vector<Op>& doubts,
                       const table::Counters& counters) {
    for (std::size_t k = 0; k < kKeys; ++k) {
      std::int64_t less = 0;
      for (const Op& op : doubts) less += std::min<std::int64_t>(0, op.change[k]);
      EXPECT_GE(missing[k], less) << "key " << k;
    }
    totals_.evicted += counters.evicted;
  }

  const Plan plan_;
  const End end_;
  Totals& totals_;
  std::mt19937_64 dice_;
  const Shared<World> world_;
  std::vector<Life> lives_;
};

void play(int rounds) {
  const std::uint64_t seed = base_seed();
  const base::TestFolder folder;
  Totals totals;
  std::int64_t time = 0;
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    const std::uint64_t number = seed + static_cast<std::uint64_t>(i);
    std::mt19937_64 dice(number);
    const bool is_tiny = pick(dice, 0, 3) == 0, is_tight = !is_tiny && pick(dice, 0, 2) == 0;
    // A large table goes on from round to round, a tiny one would be full.
    const std::string file = folder.at(is_tiny ? "tiny" : is_tight ? "tight" : "state");
    if (is_tiny || is_tight || i % 50 == 0) std::remove(file.c_str());
    if (i % 50 == 0) time = 0;
    const auto end = static_cast<Round::End>(pick(dice, 0, 2));
    SCOPED_TRACE("WEIR_SEED=" + std::to_string(number));
    time = Round({file, "r" + std::to_string(i) + ".", is_tiny, is_tight, number, time}, end, totals).run();
  }
  std::cout << totals.kills << " kills, " << totals.stops << " stops, " << totals.requests << " requests, "
            << totals.in_doubt << " in doubt of which " << totals.in_effect << " counted, " << totals.evicted
            << " evictions, " << totals.compacted << " logs became counts\n";
  EXPECT_GT(totals.compacted, 0u);
}

TEST(Kill, LeavesEveryCountExplainedAndNobodyWaiting) { play(60); }
TEST(KillLong, LeavesEveryCountExplainedAndNobodyWaiting) { play(2'000); }

}  // namespace
}  // namespace weir::test
