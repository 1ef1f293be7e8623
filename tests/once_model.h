// A model of requests that may be sent twice: a sum for each key, and a list of what passed.
//
// An id is bound to what it charges: the same id with another key or another cost is another request. Limits are
// windows that do not end, so the model has no time. One thread. Used by once_test.cc and fleet_once_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "seed.h"
#include "weir/limiter.h"

namespace weir::test {

class OnceModel {
 public:
  explicit OnceModel(std::int64_t permits) : permits_(permits) {}

  struct Told {
    bool allowed = false, repeated = false;
    std::vector<std::int64_t> remaining{};
    friend bool operator==(const Told&, const Told&) = default;
  };
  // Each key once.
  using Asked = std::vector<std::pair<std::string, std::int64_t>>;

  Told ask(const std::string& id, const Asked& asked) {
    Told told{.allowed = true, .repeated = passed_.contains({id, asked})};
    if (!told.repeated) {
      for (const auto& [key, cost] : asked) told.allowed = told.allowed && used_[key] + cost <= permits_;
      if (told.allowed) charge(asked);
      if (told.allowed) passed_.insert({id, asked});
    }
    for (const auto& [key, cost] : asked) told.remaining.push_back(permits_ - used_[key]);
    return told;
  }

 private:
  void charge(const Asked& asked) {
    for (const auto& [key, cost] : asked) used_[key] = std::max<std::int64_t>(0, used_[key] + cost);
  }

  std::int64_t permits_;
  std::map<std::string, std::int64_t> used_;
  std::set<std::pair<std::string, Asked>> passed_;
};

// `requests` with few ids, keys and costs, many of them sent again. `limiter_of` receives the number of each.
template <class LimiterOf>
void compare_once(int requests, const LimiterOf& limiter_of) {
  std::mt19937_64 random = seeded();
  const Limit limit = compile("40/year", Algorithm::fixed_window).value();
  OnceModel model(40);
  int repeated = 0, denied = 0;
  for (int i = 0; i < requests; ++i) {
    const std::string id = std::to_string(pick(random, 1, 4));
    OnceModel::Asked asked;
    for (const char* key : {"{t}x", "{t}y", "{t}z"}) {
      if (pick(random, 0, 1) == 0) asked.emplace_back(key, pick(random, -2, 3));
    }
    if (asked.empty()) asked.emplace_back("{t}x", 1);
    std::vector<Charge> charges;
    for (const auto& [key, cost] : asked) charges.push_back({.key = key, .limit = &limit, .cost = cost});
    const auto verdict = limiter_of(i).check_once(id, charges);
    ASSERT_TRUE(verdict) << verdict.error().message;
    OnceModel::Told told{verdict->allowed, verdict->repeated, {}};
    for (const Decision& decision : verdict->decisions) told.remaining.push_back(decision.remaining);
    const OnceModel::Told right = model.ask(id, asked);
    ASSERT_TRUE(told == right) << "request " << i << ", id " << id << ": allowed " << told.allowed << ", not "
                               << right.allowed << "; repeated " << told.repeated << ", not " << right.repeated;
    repeated += told.repeated ? 1 : 0;
    denied += told.allowed ? 0 : 1;
  }
  EXPECT_GT(repeated, 0);
  EXPECT_GT(denied, 0);
}

}  // namespace weir::test
