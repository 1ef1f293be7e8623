// A call whose caller stopped waiting after it was sent. Redis may have executed it, and its reply may still arrive.
//
// Two facts become known later, in any order and on different threads: what this node decided instead, and what Redis
// did. When both are known, the store settles the call. A charge that both made counts once. A charge that only Redis
// made is undone. If the connection breaks first, what Redis did stays unknown, and the charge counts as not made.
// This errs against the client. Any thread. Tested by tests/fleet_seam_test.cc and tests/fleet_seam_model_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fleet/script_call.h"
#include "weir/verdict.h"

namespace weir::fleet {

class Doubt {
 public:
  struct Part {
    std::string name{};  // as key_name.h builds it
    Limit limit{};
    std::int64_t cost = 0;
    std::uint64_t epoch = UINT64_MAX;  // of UnsyncedCharges, when this node booked it

    std::string_view key() const { return std::string_view(name).substr(1); }
  };
  struct Outcome {
    bool is_granted = false;  // by this node
    bool is_charged = false;  // by Redis
    bool is_refused = false;  // by Redis, as too late: it did not execute the call
    std::int64_t charged_us = 0;
    std::vector<Decision> decisions{};  // Redis's decision for each part; empty if unknown
  };
  using Settle = std::function<void(const Doubt&, const Outcome&)>;

  // `undoes_us`: for an undo, the time of the charge that it undoes.
  Doubt(What what, std::vector<Part> parts, std::string id, Settle settle, std::int64_t undoes_us = 0)
      : what_(what), parts_(std::move(parts)), id_(std::move(id)), settle_(std::move(settle)), undoes_us_(undoes_us) {}

  What what() const { return what_; }
  const std::vector<Part>& parts() const { return parts_; }
  const std::string& id() const { return id_; }
  std::int64_t undoes_us() const { return undoes_us_; }

  // The epochs when this node booked its charges: what UnsyncedCharges::doubt() returned. Only before decide().
  void set_epoch(std::string_view name, const Limit& limit, std::uint64_t epoch) {
    for (Part& part : parts_) {
      if (part.name == name && part.limit == limit) part.epoch = epoch;
    }
  }
  std::uint64_t epoch_of(std::string_view name, const Limit& limit) const {
    for (const Part& part : parts_) {
      if (part.name == name && part.limit == limit) return part.epoch;
    }
    return UINT64_MAX;
  }

  // What this node decided instead.
  void decide(bool is_granted) {
    settle_with([&](Outcome& outcome) { outcome.is_granted = is_granted; }, &Doubt::is_decided_);
  }
  // What Redis did, as far as it is known.
  void resolve(bool is_charged, std::int64_t charged_us, std::vector<Decision> decisions = {},
               bool is_refused = false) {
    settle_with(
        [&](Outcome& outcome) {
          outcome.is_charged = is_charged;
          outcome.is_refused = is_refused;
          outcome.charged_us = charged_us;
          outcome.decisions = std::move(decisions);
        },
        &Doubt::is_resolved_);
  }

 private:
  template <class Change>
  void settle_with(Change change, bool Doubt::*is_known) {
    Outcome outcome;
    {
      const base::MutexLock lock(mutex_);
      change(outcome_);
      if (std::exchange(this->*is_known, true) || !(is_decided_ && is_resolved_)) return;
      outcome = outcome_;
    }
    if (settle_) settle_(*this, outcome);
  }

  const What what_;
  std::vector<Part> parts_;  // the epochs change until decide()
  const std::string id_;
  const Settle settle_;
  const std::int64_t undoes_us_;
  base::Mutex mutex_;
  bool is_decided_ GUARDED_BY(mutex_) = false, is_resolved_ GUARDED_BY(mutex_) = false;
  Outcome outcome_ GUARDED_BY(mutex_);
};

}  // namespace weir::fleet
