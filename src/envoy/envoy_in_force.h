// The current limits of Envoy's files and their counters. One thread replaces the limits; all server loops read them.
//
// Each loop keeps a view, and checks with one atomic load whether there is a newer one. put() keeps the replaced
// limits until the next put(). This way the thread that calls put() frees them, not the last loop to drop its view:
// freeing a tree of many limits takes a while. While lifted, as by the kill switch, no limit of the files applies.
// Any thread may call it. Tested by envoy_in_force_test.cc, rls_envoy_test.cc and tests/server/envoy_files.sh.
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
  std::shared_ptr<const EnvoyRules> rules{};  // null if there are no files
  std::vector<EnvoyCounts*> counts{};         // one for each rule, by its place
  bool counts_denied = false;                 // charge denied requests too, at most to full
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
    std::shared_ptr<const EnvoyView> old;  // freed after the lock is released
    const std::lock_guard lock(mutex_);
    old.swap(replaced_);
    replaced_ = view_;
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

  // Updates a view if there is a newer one.
  void renew(std::shared_ptr<const EnvoyView>& view, std::uint64_t& version) const {
    if (version == version_.load(std::memory_order_acquire)) return;
    std::shared_ptr<const EnvoyView> newest;  // takes the old view, which is released after the lock
    const std::lock_guard lock(mutex_);
    newest = view_;
    view.swap(newest);
    version = version_.load(std::memory_order_relaxed);
  }

  EnvoyTally& tally() { return tally_; }
  const EnvoyTally& tally() const { return tally_; }
  std::atomic<std::uint64_t> unknown_domains{0};  // requests whose domain no file defines

 private:
  void store(EnvoyView next) {
    view_ = std::make_shared<const EnvoyView>(std::move(next));
    version_.fetch_add(1, std::memory_order_release);
  }

  EnvoyTally tally_;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const EnvoyView> view_ = std::make_shared<const EnvoyView>();
  std::shared_ptr<const EnvoyView> replaced_;  // the previous view
  std::atomic<std::uint64_t> version_{1};
};

}  // namespace weir
