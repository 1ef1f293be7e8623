// See schedule_plan.h: the two ways to choose interleavings, at random and one after another. A failing schedule is
// reported by its seed, or by the steps at which it switched.

#include "schedule_plan.h"
#include "seed.h"

namespace weir::test {
namespace {

// How many accesses a participant makes before a switch: some styles switch at every access, some rarely.
std::uint64_t slice(std::uint64_t style, std::mt19937_64& random) {
  switch (style) {
    case 0:
      return 1;
    case 1:
      return 1 + below(random, 6);
    case 2:
      return 1 + below(random, 40);
    case 3:
      return below(random, 4) > 0 ? 1 + below(random, 4) : 60 + below(random, 100);
    default:
      return 1 + below(random, std::uint64_t{1} << below(random, 8));
  }
}

class RandomRun {
 public:
  RandomRun(World& world, Schedule& schedule, Play& play, const Plan& plan, std::mt19937_64& random, Tally& tally)
      : world_(world),
        schedule_(schedule),
        play_(play),
        random_(random),
        tally_(tally),
        stopped_(play.fibers(), false) {
    style_ = below(random, 5);
    kills_ = below(random, 3) == 0;
    stop_at_ = below(random, 40);
    for (unsigned i = 0; i < plan.jumps; ++i) jumps_at_.push_back(below(random, 60));
  }

  void run() {
    std::size_t last = 0;
    for (std::uint64_t slices = 0;; ++slices) {
      for (const std::uint64_t at : jumps_at_) {
        if (slices == at) world_.jump();
      }
      std::vector<std::size_t> ready;
      for (std::size_t i = 0; i < play_.fibers(); ++i) {
        if (!schedule_.is_over(i) && !stopped_[i]) ready.push_back(i);
      }
      if (ready.empty() && !wake()) break;
      if (ready.empty()) continue;
      if (slices >= stop_at_ && ready.size() > 1 && !schedule_.is_over(last) && !stopped_[last]) {
        stop_at_ = below(random_, 2) == 0 ? ~std::uint64_t{0} : slices + 1 + below(random_, 30);
        stop(last);
        continue;
      }
      last = ready[below(random_, ready.size())];
      tally_.accesses += schedule_.run(last, slice(style_, random_));
    }
    while (world_.epoch() < world_.last_epoch()) world_.jump();
  }

 private:
  void stop(std::size_t fiber) {
    if (!kills_) {
      stopped_[fiber] = true;
      ++tally_.stops;
      return;
    }
    play_.kill(fiber, below(random_, 2) == 0);
    ++tally_.kills;
  }

  bool wake() {
    bool any = false;
    for (std::size_t i = 0; i < stopped_.size(); ++i) any = any || stopped_[i];
    stopped_.assign(stopped_.size(), false);
    return any;
  }

  World& world_;
  Schedule& schedule_;
  Play& play_;
  std::mt19937_64& random_;
  Tally& tally_;
  std::uint64_t style_ = 0, stop_at_ = 0;
  std::vector<std::uint64_t> jumps_at_;
  bool kills_ = false;
  std::vector<bool> stopped_;
};

void count(const Play& play, Tally& tally) {
  ++tally.histories;
  for (const Event<Action>& event : play.history()) {
    ++tally.operations;
    if (event.has_ended() && event.action.answer == Answer::denied) ++tally.denied;
  }
}

// One run with switches at the given accesses, counted over both participants.
struct Walk {
  std::uint64_t accesses = 0;  // in all
  std::uint64_t useful = 0;    // up to here both were still at work
};

Walk walk(Schedule& schedule, std::size_t first, const std::vector<std::uint64_t>& switches) {
  Walk walk;
  std::size_t now = first, next = 0;
  while (!schedule.is_over(0) || !schedule.is_over(1)) {
    if (schedule.is_over(now)) now = 1 - now;
    const std::uint64_t until = next < switches.size() ? switches[next] : ~std::uint64_t{0};
    const bool both = !schedule.is_over(0) && !schedule.is_over(1);
    walk.accesses += schedule.run(now, until - walk.accesses);
    if (both) walk.useful = walk.accesses;
    if (walk.accesses == until) {
      ++next;
      now = 1 - now;
    }
  }
  return walk;
}

class Enumeration {
 public:
  Enumeration(World& world, Schedule& schedule, const Plan& plan, unsigned switches, Part part, Tally& tally)
      : world_(world), schedule_(schedule), plan_(plan), most_(switches), part_(part), tally_(tally) {}

  std::string run() {
    for (first_ = 0; first_ < 2; ++first_) {
      if (std::string wrong = from(); !wrong.empty()) return wrong;
    }
    return "";
  }

 private:
  std::string from() {
    Play play(world_, schedule_, plan_);
    const Walk made = walk(schedule_, first_, switches_);
    count(play, tally_);
    tally_.accesses += made.accesses;
    if (const std::string wrong = play.judge(); !wrong.empty()) return wrong + "\n  schedule: " + schedule_text();
    if (switches_.size() == most_) return "";
    const std::uint64_t begin = switches_.empty() ? 1 : switches_.back() + 1;
    for (std::uint64_t at = begin; at < made.useful; ++at) {
      if (switches_.empty() && at % part_.of != part_.first) continue;
      switches_.push_back(at);
      std::string wrong = from();
      switches_.pop_back();
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  std::string schedule_text() const {
    std::string text = std::to_string(first_) + " first, switch after";
    for (const std::uint64_t at : switches_) text += " " + std::to_string(at);
    return text;
  }

  World& world_;
  Schedule& schedule_;
  const Plan& plan_;
  const unsigned most_;
  const Part part_;
  Tally& tally_;
  std::size_t first_ = 0;
  std::vector<std::uint64_t> switches_;
};

}  // namespace

std::string run_at_random(World& world, Schedule& schedule, Scenario scenario, std::uint64_t seed, Tally& tally) {
  std::mt19937_64 random(seed);
  const Plan plan = random_plan(scenario, random);
  Play play(world, schedule, plan);
  RandomRun(world, schedule, play, plan, random, tally).run();
  count(play, tally);
  return play.judge();
}

std::string run_all_up_to(World& world, Schedule& schedule, const Plan& plan, unsigned switches, Part part,
                          Tally& tally) {
  return Enumeration(world, schedule, plan, switches, part, tally).run();
}

}  // namespace weir::test
