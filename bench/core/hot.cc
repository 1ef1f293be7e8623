// Keys that are in the processor's cache: what the store adds to a hash and a compare-and-swap (CAS), which it cannot
// do without.
//
// The store has capacity for a million keys, as a limiter has by default, and each thread uses 2,000 keys of its own.
// Then both threads use one single key.
#include <atomic>
#include <vector>

#include "base/siphash.h"
#include "core/comparators.h"
#include "core/contest.h"
#include "core/parts.h"
#include "core/subject.h"

namespace weir::bench {
namespace {

constexpr std::size_t kHot = 2'000, kStoreKeys = 1'000'000;
constexpr char kQuota[] = "1000/s burst 1000000000";  // a key stays live, and no check is denied

// A hash and a CAS without a store, on separate slots.
struct Bare {
  std::vector<Pair> slots = std::vector<Pair>(2'048);
  base::SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};

  base::Hash128 hash(std::string_view text) const { return base::siphash13(key, text); }
  Pair& slot(std::uint64_t number) { return slots[number % slots.size()]; }

  std::size_t swap_all(const KeyBatch& batch) {
    for (const std::uint64_t number : batch.numbers) bare_charge(slot(number));
    return kBatch;
  }
  std::size_t hash_all(const KeyBatch& batch) const {
    std::uint64_t sum = 0;
    for (const std::string_view text : batch.keys) {
      const base::Hash128 both = hash(text);
      sum ^= both.low + both.high;
    }
    asm volatile("" : : "r"(sum));  // otherwise the compiler removes the unused sum
    return kBatch;
  }
  std::size_t hash_and_swap_all(const KeyBatch& batch) {
    for (const std::string_view text : batch.keys) {
      const base::Hash128 both = hash(text);
      bare_charge(slot(both.low ^ both.high));
    }
    return kBatch;
  }
};

class HotContest {
 public:
  explicit HotContest(const Scale& scale) : load_{scale.hot_checks / kBatch}, less_{load_.batches / 4} {}

  void run(int rounds) {
    if (cores() > 1) contestants_.insert(contestants_.end(), {&hash_pair_, &batched_pair_});
    alternate(contestants_, rounds);
  }

  void add_to(Report& report) const {
    report.begin("Hot: 2,000 keys of 40 bytes in a store for a million; nanoseconds per request");
    for (const Contestant* each : contestants_) report.add(row_of(*each));
    report.add(cost_row(batched_, floor_, at_most(2.5)));
    report.add(cost_row(alone_, floor_, {}));
    report.add(cost_row(verdict_, alone_, at_most(5.5)));
    report.add(speed_row(batched_, mutexed_, {}));
    report.add(speed_row(batched_, sharded_, {}));
    if (cores() < 2) return;
    report.add(speed_row(hash_pair_, hash_, {}));
    report.add(speed_row(batched_pair_, batched_, at_least(1.6)));
    report.add({"hot check, two threads", millions(batched_pair_), "M/s", Rival{"the goal", 50}});
  }

 private:
  std::size_t verdicts(const KeyBatch& batch) {  // five verdicts; one key of the batch is unused
    std::size_t allowed = 0;
    const std::int64_t now = clock_->now().count();
    for (std::size_t i = 0; i + 3 <= kBatch; i += 3) {
      allowed += subject_.check_three(std::span(batch.keys).subspan(i).first<3>(), now) ? 1u : 0u;
    }
    return allowed;
  }

  const Load load_, less_;
  const std::shared_ptr<const Clock> clock_ = make_system_clock();
  const Limit limit_ = value_or_die(compile(kQuota));
  const HotKeys keys_{0, kHot, 1}, others_{kHot, kHot, 2};
  Subject subject_{{.keys = kStoreKeys}, limit_, clock_};
  MutexedMap map_;
  ShardedMap shards_;
  Bare bare_;

  Contestant swap_ =
      one_thread("bare 16-byte CAS", load_, keys_, [this](const KeyBatch& batch) { return bare_.swap_all(batch); });
  Contestant hash_ =
      one_thread("hash of a key", load_, keys_, [this](const KeyBatch& batch) { return bare_.hash_all(batch); });
  Contestant floor_ = one_thread("hash + bare CAS", load_, keys_,
                                 [this](const KeyBatch& batch) { return bare_.hash_and_swap_all(batch); });
  Contestant mutexed_ = one_thread("hot map under a mutex", less_, keys_, in_map(map_, limit_, *clock_));
  Contestant sharded_ = one_thread("hot map under 64 mutexes", less_, keys_, in_map(shards_, limit_, *clock_));
  Contestant alone_ = one_thread("hot check, one at a time", load_, keys_, alone(subject_, *clock_));
  Contestant batched_ = one_thread("hot check, batches of 16", load_, keys_, in_batches(subject_, *clock_));
  Contestant verdict_ = one_thread("hot verdict over 3 keys", {less_.batches, kBatch / 3}, keys_,
                                   [this](const KeyBatch& batch) { return verdicts(batch); });
  Contestant hash_pair_ = two_threads("hash of a key, two threads", load_, keys_, others_,
                                      [this](const KeyBatch& batch) { return bare_.hash_all(batch); });
  Contestant batched_pair_ =
      two_threads("hot check, batches of 16, two threads", load_, keys_, others_, in_batches(subject_, *clock_));
  std::vector<Contestant*> contestants_{&swap_,  &hash_,    &floor_,  &mutexed_, &sharded_,
                                        &alone_, &batched_, &verdict_};  // and the pairs, if there are two cores
};

}  // namespace

void measure_hot(Report& report, const Scale& scale) {
  const auto contest = std::make_unique<HotContest>(scale);
  contest->run(scale.rounds);
  contest->add_to(report);
}

void measure_one_key(Report& report, const Scale& scale) {
  if (cores() < 2) return;
  const auto clock = make_system_clock();
  Subject subject({.keys = kStoreKeys}, value_or_die(compile(kQuota)), clock);
  alignas(128) std::atomic<std::uint64_t> word{0};
  alignas(128) const HotKeys one(0, 1, 1);
  const Load load{scale.hot_checks / kBatch};
  const auto swap_batch = [&](const KeyBatch&) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      std::uint64_t old = word.load(std::memory_order_relaxed);
      while (!word.compare_exchange_weak(old, old + 1)) {
      }
    }
    return kBatch;
  };
  Contestant swap = one_thread("CAS loop on one word", load, one, swap_batch);
  Contestant swap_pair = two_threads("CAS loop on one word, two threads", load, one, one, swap_batch);
  Contestant single = one_thread("check of one key", load, one, alone(subject, *clock));
  Contestant pair = two_threads("check of one key, two threads", load, one, one, alone(subject, *clock));
  Contestant batched =
      two_threads("check of one key, batches of 16, two threads", load, one, one, in_batches(subject, *clock));
  const std::vector<Contestant*> all{&swap, &swap_pair, &single, &pair, &batched};
  alternate(all, scale.rounds);

  report.begin("One key for all requests; nanoseconds per request, over both threads");
  for (const Contestant* each : all) report.add(row_of(*each));
  report.add(speed_row(pair, swap_pair, {}));
  report.add(speed_row(batched, swap_pair, at_least(0.7)));
}

}  // namespace weir::bench
