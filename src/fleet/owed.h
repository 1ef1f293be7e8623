// What a node let through while Redis could not be asked, until it has been written back there.
//
// Bounded: beyond so many keys, what is let through is only counted. Names are what keys are called in Redis. Any
// thread. Tested by owed_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/verdict.h"

namespace weir {

struct Debt {
  std::string key{};
  Limit limit{};  // the whole one
  std::int64_t cost = 0;
  Micros until{0};  // monotonic: from then on it has been recovered from
};

class Owed {
 public:
  explicit Owed(std::size_t keys_max) : keys_max_(keys_max) {}

  // `most`: no more than that is still spent here, whatever was let through: the rest has been recovered from, as it
  // would have in Redis. False: there is no room for another key.
  bool add(std::string_view name, const Charge& charge, Micros until, std::int64_t most = INT64_MAX) {
    const std::lock_guard lock(mutex_);
    const auto known = debts_.find(name);
    if (known == debts_.end() && (debts_.size() >= keys_max_ || charge.cost <= 0)) {
      if (charge.cost > 0) lost_ += static_cast<std::uint64_t>(charge.cost);
      return false;
    }
    Debt& debt = known != debts_.end() ? known->second : debts_[std::string(name)];
    if (debt.key.empty()) debt.key = charge.key;
    debt.limit = *charge.limit;
    debt.cost = std::clamp<std::int64_t>(debt.cost + charge.cost, 0, std::max<std::int64_t>(0, most));
    debt.until = std::max(debt.until, until);
    return true;
  }
  void forget(std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (const auto known = debts_.find(name); known != debts_.end()) debts_.erase(known);
  }

  // Of one key, unless it has been recovered from.
  std::int64_t cost_of(std::string_view name, Micros now) const {
    const std::lock_guard lock(mutex_);
    const auto known = debts_.find(name);
    return known == debts_.end() || known->second.until <= now ? 0 : known->second.cost;
  }

  // Some of them, taken out.
  std::vector<Debt> take(std::size_t most) {
    std::vector<Debt> out;
    const std::lock_guard lock(mutex_);
    while (!debts_.empty() && out.size() < most) {
      out.push_back(std::move(debts_.begin()->second));
      debts_.erase(debts_.begin());
    }
    return out;
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return debts_.size();
  }
  std::uint64_t lost() const {
    const std::lock_guard lock(mutex_);
    return lost_;
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  const std::size_t keys_max_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Debt, Hash, std::equal_to<>> debts_;
  std::uint64_t lost_ = 0;
};

}  // namespace weir
