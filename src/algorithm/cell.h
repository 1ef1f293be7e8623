// A cell is the state of one key under one limit: one interface to all algorithms.
//
// A store keeps cells and makes their changes atomic, always in three steps. prepare() corrects a state that is ahead
// of now, and that correction stays. decide() returns a decision and a proposal without changing anything. commit()
// writes the proposal. refund() replaces decide() to refund an earlier charge. A cell's limit is the one that last
// admitted a request; requests may bring other versions of it. The counterpart in Lua is fleet/script.lua. One
// thread. Tested by differential_test.cc.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include "algorithm/bucket.h"
#include "algorithm/compact_log.h"
#include "algorithm/concurrency.h"
#include "algorithm/fixed_window.h"
#include "algorithm/sliding_log.h"
#include "algorithm/sliding_window.h"

namespace weir::algorithm {

// What commit() writes. For a log it is only the edit, because the log may be long.
using Proposal = std::variant<FixedWindow, SlidingWindow, Bucket, LogEdit, LogRefund, CompactLog>;

// settle_state(), step_state()
//
// One name for the functions of every algorithm. `own` is the limit that the state belongs to.
inline Settled<FixedWindow> settle_state(const FixedWindow& s, const Limit& own, std::int64_t now) {
  return fixed_window_settle(s, own, now);
}
inline Settled<Bucket> settle_state(const Bucket& s, const Limit& own, std::int64_t now) {
  return bucket_settle(s, own, now);
}
template <class Log>
Settled<LogEdit> settle_state(const Log& s, const Limit&, std::int64_t now) {
  return sliding_log_settle(s, now);
}
template <TwoCounts Counts>
Settled<Counts> settle_state(const Counts& s, const Limit& own, std::int64_t now) {
  return sliding_window_settle(s, own, now);
}

inline auto step_state(const FixedWindow& s, const Limit& limit, std::int64_t now, std::int64_t cost, const Limit&) {
  return fixed_window_step(s, limit, now, cost);
}
inline auto step_state(const SlidingWindow& s, const Limit& limit, std::int64_t now, std::int64_t cost, const Limit&) {
  return sliding_window_step(s, limit, now, cost);
}
inline auto step_state(const CompactLog& s, const Limit& limit, std::int64_t now, std::int64_t cost, const Limit&) {
  return compact_log_step(s, limit, now, cost);
}
[[gnu::always_inline]] inline auto step_state(const Bucket& s, const Limit& limit, std::int64_t now, std::int64_t cost,
                                              const Limit& own) {
  return bucket_step(s, limit, now, cost, own);
}
template <class Log>
auto step_state(const Log& s, const Limit& limit, std::int64_t now, std::int64_t cost, const Limit&) {
  return sliding_log_step(s, limit, now, cost);
}

// Log is SlidingLog, or a store's own type of log. A cell with a log's limit may instead be made with a CompactLog,
// and then decides by that.
template <class Log>
class BasicCell {
 public:
  using State = std::variant<FixedWindow, SlidingWindow, Bucket, Log, Holds, CompactLog>;

  explicit BasicCell(const Limit& limit) : limit_(limit), state_(fresh(limit.algorithm)) {}
  BasicCell(const Limit& limit, State state) : limit_(limit), state_(std::move(state)) {}

  // Corrects a state that is ahead of now, for a request under `limit`, which shares this state. Returns true if
  // anything changed. The change stays even if the request is denied.
  bool prepare(const Limit& limit, std::int64_t now) {
    if (limit.calendar != limit_.calendar) limit_.calendar = limit.calendar;  // same zone, perhaps from a newer file
    return std::visit([&](auto& state) { return settle(state, now); }, state_);
  }
  bool prepare(std::int64_t now) { return prepare(limit_, now); }

  // Whether prepare() would change nothing.
  bool is_current(std::int64_t now) const {
    return std::visit([&](const auto& state) { return !is_ahead(state, now); }, state_);
  }

  // decide(), commit()
  //
  // `limit` may be any limit that shares this state.
  Stepped<Proposal> decide(const Limit& limit, std::int64_t now, std::int64_t cost) const {
    return std::visit([&](const auto& state) { return step(state, limit, now, cost); }, state_);
  }
  Stepped<Proposal> decide(std::int64_t now, std::int64_t cost) const { return decide(limit_, now, cost); }

  // refund()
  //
  // Proposes to refund `cost` permits that were charged under the terms in `charged`, as far as they still count.
  // `changed` says whether the proposal differs from the state. The decision is what a peek would return afterwards.
  struct Refund {
    Stepped<Proposal> outcome;
    bool changed = false;
    std::int64_t permits = 0;  // refunded, rounded down
  };
  Refund refund(const Limit& limit, std::int64_t now, const Charged& charged, std::int64_t cost) const {
    Refund refund = std::visit([&](const auto& state) { return take_back(state, now, charged, cost); }, state_);
    BasicCell after = *this;
    if (refund.changed) after.commit(limit, refund.outcome);
    refund.outcome.decision = after.decide(limit, now, 0).decision;
    admit(refund.outcome.decision);
    return refund;
  }

  void commit(const Limit& limit, const Stepped<Proposal>& outcome) {
    std::visit([this](const auto& next) { this->write(next); }, outcome.next);
    if (outcome.converts) limit_ = limit;
  }

  // Concurrency only. These write at once.
  Decision acquire(const Limit& limit, std::int64_t now, std::string_view id, std::int64_t cost) {
    Holds& holds = std::get<Holds>(state_);
    const Decision decision = concurrency_acquire(holds, limit, now, id, cost);
    if (decision.allowed && cost > 0 && concurrency_suits(holds, limit, now)) limit_ = limit;
    return decision;
  }
  Decision release(std::int64_t now, std::string_view id) {
    return concurrency_release(std::get<Holds>(state_), limit_, now, id);
  }

  const Limit& limit() const { return limit_; }
  const State& state() const { return state_; }

 private:
  static State fresh(Algorithm algorithm) {
    switch (algorithm) {
      case Algorithm::fixed_window:
        return FixedWindow{};
      case Algorithm::sliding_window:
        return SlidingWindow{};
      case Algorithm::sliding_log:
        return Log{};
      case Algorithm::concurrency:
        return Holds{};
      case Algorithm::token_bucket:
      case Algorithm::leaky_bucket:
      case Algorithm::leaky_meter:
        break;
    }
    return Bucket{};
  }

  void write(const LogEdit& edit) { std::get<Log>(state_).apply(edit); }
  void write(const LogRefund& refund) { std::get<Log>(state_).apply(refund); }
  template <class S>
  void write(const S& next) {
    state_ = next;
  }

  template <class S>
  bool is_ahead(const S& s, std::int64_t now) const {
    if constexpr (std::is_same_v<S, Holds>) {
      return !concurrency_suits(s, limit_, now);
    } else {
      return settle_state(s, limit_, now).moved;
    }
  }

  template <class S>
  bool settle(S& s, std::int64_t now) const {
    if constexpr (std::is_same_v<S, Holds>) {
      return concurrency_settle(s, limit_, now);
    } else {
      const auto settled = settle_state(s, limit_, now);
      if (!settled.moved) return false;
      if constexpr (std::is_same_v<S, Log>) {
        s.apply(settled.state);
      } else {
        s = settled.state;
      }
      return true;
    }
  }

  template <class S>
  Stepped<Proposal> step(const S& s, const Limit& limit, std::int64_t now, std::int64_t cost) const {
    if constexpr (std::is_same_v<S, Holds>) {
      WEIR_ASSERT(!"concurrency is acquired, not checked");
      return {Bucket{}, Decision{}};
    } else {
      const auto stepped = step_state(s, limit, now, cost, limit_);
      return {stepped.next, stepped.decision, stepped.converts};
    }
  }

  Refund take_back(const FixedWindow& s, std::int64_t now, const Charged& charged, std::int64_t cost) const {
    const FixedWindow next = fixed_window_refund(s, limit_, now, charged, cost);
    return {{next, {}}, !(next == s), s.count - next.count};
  }
  Refund take_back(const SlidingWindow& s, std::int64_t now, const Charged& charged, std::int64_t cost) const {
    const SlidingWindow next = sliding_window_refund(s, limit_, now, charged, cost);
    if (next == s) return {{next, {}}};
    const SlidingWindow at = sliding_window_roll(s, limit_.period_us, now);
    return {{next, {}}, true, at.previous + at.current - next.previous - next.current};
  }
  Refund take_back(const Bucket& s, std::int64_t now, const Charged& charged, std::int64_t cost) const {
    const Bucket next = bucket_refund(s, limit_, now, charged, cost);
    const auto units = bucket_debt(s, limit_.rate, now) - bucket_debt(next, limit_.rate, now);
    return {{next, {}}, !(next == s), div_floor(static_cast<std::int64_t>(units), limit_.weight)};
  }
  Refund take_back(const Log& s, std::int64_t now, const Charged& charged, std::int64_t cost) const {
    const LogRefund refund = sliding_log_refund(s, limit_, now, charged, cost);
    return {{refund, {}}, refund.cost > 0, refund.cost};
  }
  Refund take_back(const CompactLog& s, std::int64_t now, const Charged& charged, std::int64_t cost) const {
    const CompactLog next = compact_log_refund(s, limit_, now, charged, cost);
    if (next == s) return {{next, {}}};
    return {{next, {}}, true, sliding_window_roll(s, limit_.period_us, now).used() - next.used()};
  }
  Refund take_back(const Holds&, std::int64_t, const Charged&, std::int64_t) const {
    WEIR_ASSERT(!"concurrency is released, not refunded");
    return {{Bucket{}, {}}, false};
  }

  Limit limit_;
  State state_;
};

using Cell = BasicCell<SlidingLog>;

}  // namespace weir::algorithm
