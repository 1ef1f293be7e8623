// Ten million keys in random order: most checks wait for memory, in the store and in the maps.
//
// Each contestant writes the text of a key just before it uses it. So this time is a part of every figure, and it has a
// row of its own. The limit refills so slowly that every key stays live.
#include <memory>
#include <vector>

#include "core/comparators.h"
#include "core/contest.h"
#include "core/parts.h"
#include "core/subject.h"
#include "kit/machine.h"

namespace weir::bench {
namespace {

class ColdContest {
 public:
  explicit ColdContest(const Scale& scale) : keys_(scale.keys), load_{scale.cold_checks / kBatch} {}

  // Checks every key once.
  void fill() {
    const std::uint64_t before = resident_bytes();
    map_.reserve(keys_);
    visit_all(in_map(map_, limit_, *clock_));
    map_bytes_ = static_cast<double>(resident_bytes() - before);
    shards_.reserve(keys_);
    visit_all(in_map(shards_, limit_, *clock_));
    insert_ns_ = time_ns([this] { visit_all(in_batches(subject_, *clock_)); }) / static_cast<double>(keys_);
  }

  void run(int rounds) {
    if (cores() > 1) contestants_.insert(contestants_.end(), {&sharded_pair_, &batched_pair_});
    alternate(contestants_, rounds);
  }

  void add_to(Report& report) const {
    report.begin("Cold: " + std::to_string(keys_) + " keys of 40 bytes; each figure includes making the key");
    report.add({"memory of the map", map_bytes_ / static_cast<double>(keys_), "B/key"});
    report.add({"a new key, batches of 16", insert_ns_, "ns"});
    for (const Contestant* each : contestants_) report.add(row_of(*each));
    report.add(speed_row(alone_, mutexed_, at_least(3.5)));
    report.add(speed_row(batched_, mutexed_, at_least(12)));
    report.add(speed_row(batched_, sharded_, {}));
    if (cores() < 2) return;
    report.add(speed_row(batched_pair_, batched_, at_least(1.4)));
    report.add(speed_row(batched_pair_, sharded_pair_, {}));
    report.add({"cold check, two threads", millions(batched_pair_), "M/s", Rival{"the goal", 20}});
  }

 private:
  template <class Visit>
  void visit_all(Visit visit) {
    ColdKeys source(keys_, 0);
    for (std::size_t first = 0; first < keys_; first += kBatch) visit(source.from(first));
  }

  const std::size_t keys_;
  const Load load_;
  const std::shared_ptr<const Clock> clock_ = make_system_clock();
  const Limit limit_ = value_or_die(compile("100/day", Algorithm::token_bucket));
  Subject subject_{{.keys = keys_}, limit_, clock_};
  MutexedMap map_;
  ShardedMap shards_;
  double map_bytes_ = 0, insert_ns_ = 0;

  Contestant making_ = one_thread("making a key", load_, ColdKeys(keys_, 1), [](const KeyBatch& batch) {
    asm volatile("" : : "r"(&batch) : "memory");  // otherwise the compiler removes the unused keys
    return kBatch;
  });
  Contestant mutexed_ = one_thread("cold map under a mutex", load_, ColdKeys(keys_, 1), in_map(map_, limit_, *clock_));
  Contestant sharded_ =
      one_thread("cold map under 64 mutexes", load_, ColdKeys(keys_, 1), in_map(shards_, limit_, *clock_));
  Contestant alone_ = one_thread("cold check, one at a time", load_, ColdKeys(keys_, 1), alone(subject_, *clock_));
  Contestant batched_ =
      one_thread("cold check, batches of 16", load_, ColdKeys(keys_, 2), in_batches(subject_, *clock_));
  Contestant sharded_pair_ = two_threads("cold map under 64 mutexes, two threads", load_, ColdKeys(keys_, 3),
                                         ColdKeys(keys_, 4), in_map(shards_, limit_, *clock_));
  Contestant batched_pair_ = two_threads("cold check, batches of 16, two threads", load_, ColdKeys(keys_, 3),
                                         ColdKeys(keys_, 4), in_batches(subject_, *clock_));
  std::vector<Contestant*> contestants_{&making_, &mutexed_, &sharded_, &alone_,
                                        &batched_};  // and the pairs, if there are two cores
};

}  // namespace

void measure_cold(Report& report, const Scale& scale) {
  const auto contest = std::make_unique<ColdContest>(scale);
  contest->fill();
  contest->run(scale.rounds);
  contest->add_to(report);
}

}  // namespace weir::bench
