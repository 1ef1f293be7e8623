// A history is planned before it is played: the second play must know at once what a reservation costs in the end. See
// settlement.h.

#include "settlement.h"

#include <algorithm>
#include <map>
#include <random>

#include "algorithm/limit.h"
#include "engine.h"
#include "seed.h"

namespace weir::test {
namespace {

constexpr std::int64_t kStart = 1'794'701'843'991'953, kPeriod = 60'000'000;
constexpr int kSteps = 60;

class Histories {
 public:
  Histories(Algorithm algorithm, std::uint64_t seed, const MakeReserver& make)
      : random_(seed), real_(make()), other_(make()) {
    permits_ = pick(random_, 1, 3) == 1 ? pick(random_, 1, 9) : 100;
    limit_ = algorithm::is_bucket(algorithm) ? *algorithm::make_bucket(algorithm, permits_, kPeriod, permits_)
                                             : *algorithm::make_window(algorithm, permits_, kPeriod);
    told_ = "seed " + std::to_string(seed) + ", " + std::string(weir::to_string(algorithm)) + " " +
            std::to_string(permits_) + "/minute\n";
  }

  std::optional<std::string> play() {
    plan();
    for (const Planned& one : plan_) {
      if (auto wrong = step(one)) return told_ + *wrong;
    }
    return {};
  }

 private:
  struct Planned {
    enum class Kind : std::uint8_t { charge, reserve, settle } kind = Kind::charge;
    std::int64_t now = 0, cost = 0;  // settle: what it really cost
    std::int64_t id = 0;
  };

  std::int64_t some_time() {
    switch (pick(random_, 0, 5)) {
      case 0:
        return pick(random_, 0, 2);
      case 1:
        return pick(random_, 0, 2 * kPeriod);
      case 2:
        return kPeriod;
      default:
        return pick(random_, 0, kPeriod / 3);
    }
  }

  // The times and costs of the history. The play shows what is admitted.
  void plan() {
    std::int64_t now = kStart, settled_at = 0;
    for (int i = 0; i < kSteps; ++i) {
      now += pick(random_, 1, 3) == 1 ? 0 : some_time();
      const std::int64_t cost =
          pick(random_, 0, 4) == 0 ? permits_ : pick(random_, 1, std::max<std::int64_t>(1, permits_ / 3));
      if (pick(random_, 0, 1) == 0) {
        plan_.push_back({.now = now, .cost = cost});
        continue;
      }
      plan_.push_back({Planned::Kind::reserve, now, cost, i});
      settled_at = pick(random_, 0, 3) == 0 ? std::max(now, settled_at) : now + some_time();  // many at one moment
      const std::int64_t actual = pick(random_, 0, 2) == 0 ? 0 : pick(random_, 0, cost + cost / 4);
      plan_.push_back({Planned::Kind::settle, settled_at, actual, i});
      actual_[i] = std::min(actual, cost);
    }
    std::ranges::stable_sort(plan_, {}, &Planned::now);
  }

  std::optional<std::string> step(const Planned& one) {
    const std::string id = std::to_string(one.id);
    const std::int64_t now = one.now;
    Decision told;
    switch (one.kind) {
      case Planned::Kind::charge:
        told = real_->charge(limit_, one.cost, now);
        note(one, "charge", told);
        if (told.allowed && !other_->charge(limit_, one.cost, now).allowed)
          return "  but it is denied without the refunds";
        break;
      case Planned::Kind::reserve:
        told = real_->reserve(limit_, id, one.cost, now);
        note(one, "reserve", told);
        if (!told.allowed) break;
        open_[one.id] = one.cost;
        if (actual_[one.id] > 0 && !other_->charge(limit_, actual_[one.id], now).allowed) {
          return "  but what it costs is denied without the refunds";
        }
        break;
      case Planned::Kind::settle: {
        const auto reserved = open_.find(one.id);
        if (reserved == open_.end()) return {};
        const std::int64_t before = real_->charge(limit_, 0, now).remaining;
        told = real_->commit(limit_, id, one.cost, now);
        note(one, "settle", told);
        const std::int64_t extra = one.cost - reserved->second;
        open_.erase(reserved);
        if (extra > 0) {
          if (told.remaining != std::max<std::int64_t>(0, before - extra))
            return "  but what it cost more is charged now";
          other_->overdraw(limit_, before - told.remaining, now);
        } else if (told.remaining < before || told.remaining > before - extra) {
          return "  but it had not so much to give back";
        }
        break;
      }
    }
    return compare(now);
  }

  std::optional<std::string> compare(std::int64_t now) {
    const Decision real = real_->charge(limit_, 0, now), other = other_->charge(limit_, 0, now);
    if (real.remaining > other.remaining || real.reset_after < other.reset_after) {
      return "  but without the refunds it would be " + to_string(other) + ", and it is " + to_string(real);
    }
    if (open_.empty() && !algorithm::is_bucket(limit_.algorithm) && !(real == other)) {
      return "  but nothing is open, and " + to_string(real) + " should be " + to_string(other);
    }
    return {};
  }

  void note(const Planned& one, const char* what, const Decision& told) {
    told_ += "  " + std::to_string(one.now - kStart) + "  " + what + " " + std::to_string(one.cost) + " (" +
             std::to_string(one.id) + ") -> " + to_string(told) + "\n";
  }

  std::mt19937_64 random_;
  const std::unique_ptr<Reserver> real_, other_;
  std::int64_t permits_ = 0;
  Limit limit_;
  std::vector<Planned> plan_;
  std::map<std::int64_t, std::int64_t> actual_;  // of each reservation, as far as it was reserved
  std::map<std::int64_t, std::int64_t> open_;    // what each has reserved
  std::string told_;
};

}  // namespace

std::optional<std::string> play_settlements(Algorithm algorithm, std::uint64_t seed, const MakeReserver& make) {
  return Histories(algorithm, seed, make).play();
}

}  // namespace weir::test
