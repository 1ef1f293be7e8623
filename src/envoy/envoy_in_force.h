// The limits of Envoy's files that hold now, and what was counted by them: put by one thread, used by all loops.
//
// A loop keeps a view of it and asks only whether there is a newer one, which costs a load. Lifted, as by the kill
// switch, no limit of the files holds. Any thread. Tested by envoy_in_force_test.cc, rls_envoy_test.cc and
// tests/server/envoy_files.sh.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "envoy/envoy_rules.h"
#include "envoy/envoy_tally.h"

namespace weir {

struct EnvoyView {
  std::shared_ptr<const EnvoyRules> rules{};  // null: there are none
  std::vector<EnvoyCounts*> counts{};         // of each rule, by its place
  bool counts_denied = false;                 // what a denied request asks for is charged, too, at most to full
  bool is_lifted = false;
};

class EnvoyInForce {
 public:
  EnvoyInForce() = default;
  EnvoyInForce(const EnvoyInForce&) = delete;
  EnvoyInForce& operator=(const EnvoyInForce&) = delete;

  void put(std::shared_ptr<const EnvoyRules> rules, bool counts_denied = false) {
    EnvoyView next{.rules = std::move(rules), .counts_denied = counts_denied};
    if (next.rules != nullptr) {
      for (const EnvoyRule& rule : next.rules->rules()) {
        next.counts.push_back(&tally_.counts(rule.domain, rule.stat, EnvoyTally::Name::of_file));
      }
    }
    const std::lock_guard lock(mutex_);
    next.is_lifted = view_->is_lifted;
    store(std::move(next));
  }

  void lift(bool is_lifted) {
    const std::lock_guard lock(mutex_);
    if (view_->is_lifted == is_lifted) return;
    EnvoyView next = *view_;
    next.is_lifted = is_lifted;
    store(std::move(next));
  }

  // Brings a view up to date.
  void renew(std::shared_ptr<const EnvoyView>& view, std::uint64_t& version) const {
    if (version == version_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    view = view_;
    version = version_.load(std::memory_order_relaxed);
  }

  EnvoyTally& tally() { return tally_; }
  const EnvoyTally& tally() const { return tally_; }
  std::atomic<std::uint64_t> unknown_domains{0};  // requests about one that no file names

 private:
  void store(EnvoyView next) {
    view_ = std::make_shared<const EnvoyView>(std::move(next));
    version_.fetch_add(1, std::memory_order_release);
  }

  EnvoyTally tally_;
  mutable std::mutex mutex_;  // guards view_
  std::shared_ptr<const EnvoyView> view_ = std::make_shared<const EnvoyView>();
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace weir
