// Windows that end while Redis is unavailable, while servers write back and while reservations are settled: a random
// history with a real Redis.
//
// Three servers get more checks than a limit of one second admits, and Redis is unavailable for them again and again,
// for some tenths of a second up to some seconds. Each permit has the time of its check, by the clock that Redis has,
// too. Afterwards, no window and no interval has more than the limit. The exception is one in which an outage began:
// there, servers start from what they last heard (docs/fleet.md, "What can be let through"). Permits of a check that
// lasted across the end of an interval are not counted. WEIR_SEED=n repeats a history, but not each moment of it.

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "fleet_faults.h"
#include "seed.h"

namespace weir::test {
namespace {

constexpr std::int64_t kPeriod_us = 1'000'000, kEdge_us = 2'000;  // the clocks differ by less than kEdge_us
constexpr std::int64_t kPermits = 60;
constexpr std::size_t kNodes = 3;

std::int64_t wall_us() {
  return std::chrono::duration_cast<Micros>(std::chrono::system_clock::now().time_since_epoch()).count();
}
std::int64_t window_of(std::int64_t at_us) { return at_us / kPeriod_us; }

class FleetSeamWindow : public FleetFaults, public ::testing::WithParamInterface<Algorithm> {
 protected:
  struct Span {
    std::int64_t begin = 0, end = 0;
  };
  struct Admitted {
    Span time{};
    std::int64_t permits = 0;
  };
  struct Reservation {
    std::size_t node = 0;
    std::string id{};
    std::size_t admitted = 0;  // its place in admitted_
  };

  std::int64_t draw(std::int64_t below) { return pick(dice_, 0, below - 1); }

  void ask(std::size_t place) {
    const Charge charge{.key = "k", .limit = &limit_, .cost = 1 + draw(2)};
    Limiter& limiter = *nodes_[place]->limiter;
    Admitted one{.time = {.begin = wall_us()}, .permits = charge.cost};
    const bool is_reserved = draw(20) == 0 && GetParam() == Algorithm::fixed_window;
    const std::string id = "r" + std::to_string(next_id_++);
    bool is_allowed = false;
    if (is_reserved) {
      const auto made = limiter.reserve({&charge, 1}, {.id = id});
      is_allowed = made && made->verdict.allowed;
    } else {
      const auto verdict = limiter.check_all({&charge, 1});
      ASSERT_TRUE(verdict) << verdict.error().message;
      is_allowed = verdict->allowed;
    }
    one.time.end = wall_us();
    if (!is_allowed) return;
    if (is_reserved) open_.push_back({place, id, admitted_.size()});
    admitted_.push_back(one);
  }
  // Cancels the oldest reservation, mostly in a later window than that of its charge.
  void cancel() {
    const Reservation made = open_.front();
    open_.erase(open_.begin());
    Admitted& its = admitted_[made.admitted];
    const Charge charge{.key = "k", .limit = &limit_, .cost = 0};
    const bool is_in_time = window_of(wall_us()) == window_of(its.time.begin);
    static_cast<void>(nodes_[made.node]->limiter->commit(made.id, {&charge, 1}));  // fails without its Redis
    if (is_in_time) its.permits = 0;
  }
  void ask_until(Micros at) {
    while (redis::steady_now() < at && !HasFatalFailure()) {
      ask(static_cast<std::size_t>(draw(kNodes)));
      if (open_.size() > 6) cancel();
    }
  }
  void ask_for(std::int64_t ms) { ask_until(redis::steady_now() + Micros{ms * 1'000}); }
  bool are_all_strict(bool is_wanted) {
    return std::ranges::all_of(nodes_, [&](const auto& node) { return is_strict(*node) == is_wanted; });
  }

  // The most that was admitted between these times, and not the permits of checks that were decided at the edges.
  std::int64_t sum(Span time) const {
    std::int64_t all = 0;
    for (const Admitted& one : admitted_) {
      const bool is_inside = one.time.begin >= time.begin + kEdge_us && one.time.end < time.end - kEdge_us;
      all += is_inside ? one.permits : 0;
    }
    return all;
  }
  bool has_outage_begun(Span time) const {
    return std::ranges::any_of(
        begun_, [&](const Span& one) { return one.begin < time.end && one.end + kEdge_us >= time.begin; });
  }
  Span interval_from(const Admitted& one) const {
    const std::int64_t at = one.time.begin;
    const std::int64_t begin =
        GetParam() == Algorithm::fixed_window ? window_of(at) * kPeriod_us : at - kEdge_us;  // its own edge counts
    return {begin, begin + kPeriod_us};
  }

  const Limit limit_ = limit_of(std::to_string(kPermits) + "/second", GetParam());
  std::mt19937_64 dice_ = seeded();
  Nodes nodes_;
  std::vector<Admitted> admitted_;
  std::vector<Reservation> open_;
  std::vector<Span> begun_;  // from before an outage until all servers noticed it
  std::uint64_t next_id_ = 0;
};

TEST_P(FleetSeamWindow, AdmitsItsLimitThoughRedisIsUnavailableAtItsEnd) {
  fleet::FleetStoreOptions options = with_deadline(kLong);
  options.membership.believed = kOrderOfMagnitude;
  nodes_ = make_nodes(kNodes, proxied(), options);
  for (int round = 0; round < 3; ++round) {
    ask_for(200 + draw(900));
    const std::int64_t began = wall_us();
    cut_off();
    ASSERT_TRUE(until([&] { return are_all_strict(false); }));
    begun_.push_back({began, wall_us()});
    ask_for(300 + draw(1'500));
    proxy_->set({});
    ASSERT_TRUE(until([&] {
      ask_for(20);
      return are_all_strict(true);
    }));
  }
  ask_for(1'200);
  std::size_t full = 0, counted = 0;
  for (const Admitted& one : admitted_) {
    const Span time = interval_from(one);
    if (has_outage_begun(time)) continue;
    const std::int64_t all = sum(time);
    ++counted;
    full += all > kPermits / 2 ? 1 : 0;
    ASSERT_LE(all, kPermits) << "of an interval from " << time.begin;
  }
  EXPECT_GT(counted, 0u);
  tell(std::to_string(full) + " of " + std::to_string(counted) + " intervals have more than half of the limit");
}

INSTANTIATE_TEST_SUITE_P(All, FleetSeamWindow, ::testing::Values(Algorithm::fixed_window, Algorithm::sliding_log),
                         algorithm_name);

}  // namespace
}  // namespace weir::test
