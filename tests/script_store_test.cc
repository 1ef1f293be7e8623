// The script against the memory store: both answer every request of a store alike, at the same time on their clocks.
// Charges of several keys, peeks, overdrafts, ids, reservations, permits in flight, expired keys, limits that change.
// The script runs in process, with scripted time, up to eight requests a call.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "fleet/redis_key.h"
#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

using What = fleet::ScriptRequest::What;
using fleet::Ruling;

// One request, and all that it refers to.
struct Asked {
  What what = What::charge;
  std::vector<std::string> keys;
  std::vector<Charge> charges;
  std::string id;
  std::vector<Decision> decisions;
  std::vector<std::int64_t> reserved;
  fleet::ScriptRequest request;
};

class ScriptStore : public StoreTest {
 protected:
  ScriptStore() {
    for (const Algorithm algorithm : kChecked) {
      for (const char* quota : {"6/minute", "9/minute", "4/10s"}) limits_.push_back(limit_of(quota, algorithm));
    }
    holds_.push_back(compile("3 concurrent").value());
    holds_.push_back(compile("5 concurrent for 20s").value());
  }

  std::int64_t in(std::int64_t low, std::int64_t high) { return pick(dice_, low, high); }

  const Limit& limit_for(std::size_t key) {  // mostly the same
    const std::size_t algorithm = key % std::size(kChecked);
    return limits_[algorithm * 3 + static_cast<std::size_t>(in(1, 12) == 1 ? in(0, 2) : 0)];
  }

  void make_up(Asked& asked) {
    static constexpr What kAll[] = {What::charge, What::charge,  What::charge, What::look,    What::overdraw,
                                    What::once,   What::reserve, What::commit, What::acquire, What::release};
    asked.what = kAll[in(0, static_cast<std::int64_t>(std::size(kAll)) - 1)];
    asked.id = std::string(1, static_cast<char>('a' + in(0, 5)));
    const bool is_single = asked.what == What::look || asked.what == What::acquire || asked.what == What::release;
    std::vector<std::size_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8};
    std::shuffle(all.begin(), all.end(), dice_);
    all.resize(static_cast<std::size_t>(is_single ? 1 : in(1, 3)));
    for (const std::size_t key : all) asked.keys.push_back("k" + std::to_string(key));
    if (asked.what == What::once) asked.id += asked.keys[0];  // the script stores an id with the subject of its request
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool in_flight = asked.what == What::acquire || asked.what == What::release;
      const Limit& limit = in_flight ? holds_[in(1, 10) == 1 ? 1 : 0] : limit_for(all[i]);
      const bool may_refund = asked.what == What::charge && in(1, 6) == 1;
      const std::int64_t least = asked.what == What::acquire ? 1 : 0;
      asked.charges.push_back({.key = asked.keys[i], .limit = &limit, .cost = may_refund ? -in(1, 4) : in(least, 4)});
    }
    if (asked.what == What::release) asked.charges[0].limit = nullptr;
    asked.decisions.resize(all.size());
    asked.reserved.resize(all.size());
    asked.request = {.what = asked.what,
                     .charges = asked.charges,
                     .id = asked.id,
                     .lasts = Micros{3'600'000'000},
                     .decisions = asked.decisions,
                     .reserved = asked.reserved};
  }

  // Makes the same request to the memory store, and compares both answers.
  void compare(Asked& asked, store::MemoryStore& store, std::int64_t now) {
    const Ruling ruling = asked.request.ruling;
    const auto alone = [](const Result<Decision>& decision) -> Result<Verdict> {
      if (!decision) return fail(decision.error());
      return Verdict{.allowed = decision->allowed, .decisions = {*decision}};
    };
    const auto verdict = [&]() -> Result<Verdict> {
      switch (asked.what) {
        case What::charge:
          return store.charge(asked.charges, now);
        case What::overdraw:
          return store.overdraw(asked.charges, now);
        case What::once:
          return store.charge(asked.charges, now, {.name = asked.id, .lasts = asked.request.lasts});
        case What::reserve:
          return store.reserve(asked.charges, asked.id, asked.request.lasts, now);
        case What::commit:
          return store.commit(asked.charges, asked.id, now);
        case What::look:
          return alone(store.preview(asked.charges[0], now));
        case What::acquire:
          return alone(store.acquire(asked.charges[0], asked.id, now));
        case What::release:
        case What::undo:
        case What::forget:
        case What::write_back:
          break;
      }
      const auto found = store.release(asked.charges[0].key, asked.id, now);
      if (!found) return fail(found.error());
      return Verdict{.allowed = *found};
    }();
    if (asked.what == What::commit && ruling == Ruling::missing) {
      ASSERT_FALSE(verdict);
      ASSERT_EQ(verdict.error().code, ErrorCode::not_found);
      return;
    }
    if (asked.what == What::reserve && ruling == Ruling::repeated) {
      ASSERT_FALSE(verdict);
      ASSERT_EQ(verdict.error().code, ErrorCode::invalid_argument);
      return;
    }
    ASSERT_TRUE(verdict) << verdict.error().message;
    ASSERT_EQ(ruling != Ruling::denied, verdict->allowed);
    ASSERT_EQ(ruling == Ruling::repeated, verdict->repeated);
    for (std::size_t i = 0; i < verdict->decisions.size(); ++i) {
      ASSERT_EQ(asked.decisions[i], verdict->decisions[i])
          << "charge " << i << " of " << asked.charges.size() << " on " << asked.keys[i] << ", cost "
          << asked.charges[i].cost << ", act " << static_cast<int>(asked.what)
          << "\n  script: " << to_string(asked.decisions[i]) << "\n  memory: " << to_string(verdict->decisions[i]);
    }
    if (asked.what == What::commit) {
      ASSERT_EQ(asked.reserved, verdict->reserved);
    }
  }

  void forget(store::MemoryStore& store, std::int64_t now) {
    const std::string key = "k" + std::to_string(in(0, 8));
    const Charge charge{.key = key};
    fleet::ScriptRequest request{.what = What::forget, .charges = {&charge, 1}};
    fleet::ScriptCall call("");
    ASSERT_TRUE(call.add(request));
    ASSERT_TRUE(redis_.call(database_, now, call));
    const auto forgotten = store.reset(key, now);
    ASSERT_TRUE(forgotten);
    if (*forgotten) {
      ASSERT_EQ(request.ruling, Ruling::allowed) << key;
    }
  }

  // Removes expired keys, as Redis does.
  void expire(std::int64_t now) {
    std::erase_if(database_.expires_ms, [&](const auto& one) {
      if (one.second * 1'000 > now) return false;
      database_.values.erase(one.first);
      return true;
    });
  }

  std::mt19937_64 dice_ = seeded();
  std::vector<Limit> limits_, holds_;
  LuaRedis redis_{fleet::redis_script()};
  LuaDatabase database_;
};

TEST_F(ScriptStore, AnswersLikeTheMemoryStore) {
  for (int round = 0; round < 60; ++round) {
    const auto store = make();
    database_ = {};
    for (int turn = 0; turn < 120; ++turn) {
      const std::int64_t now = clock_->now().count();
      std::deque<Asked> asked;
      fleet::ScriptCall call("");
      for (std::int64_t left = in(1, 8); left > 0; --left) {
        make_up(asked.emplace_back());
        if (call.add(asked.back().request)) continue;
        asked.pop_back();
        break;
      }
      const auto read = redis_.call(database_, now, call);
      ASSERT_TRUE(read) << read.error().message;
      for (Asked& one : asked) ASSERT_NO_FATAL_FAILURE(compare(one, *store, now)) << "round " << round << ", " << turn;
      if (in(1, 15) == 1) {
        ASSERT_NO_FATAL_FAILURE(forget(*store, now));
      }
      clock_->advance(Micros{in(1, 4) == 1 ? in(0, 70'000'000) : in(0, 2'000'000)});
      if (in(1, 2) == 1) expire(clock_->now().count());
    }
  }
}

}  // namespace
}  // namespace weir::test
