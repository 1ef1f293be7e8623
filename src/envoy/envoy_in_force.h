// The current limits of Envoy's files and their counters. One thread replaces the limits; all server loops read them.
//
// Each loop keeps a view, and checks with one atomic load whether there is a newer one. The thread that replaces the
// limits frees the old ones (base/snapshot.h), since freeing a tree of many limits takes a while. While lifted, as by
// the kill switch, no limit of the files applies. Any thread may call it. Tested by envoy_in_force_test.cc,
// rls_envoy_test.cc and tests/server/envoy_files.sh.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/snapshot.h"
#include "envoy/envoy_rules.h"

namespace weir::envoy {

inline constexpr std::size_t kEnvoySeriesMax = 20'000;      // in total
inline constexpr std::size_t kEnvoyValueSeriesMax = 1'000;  // names that contain request values
inline constexpr std::string_view kEnvoyOther = "other";

enum class EnvoyResult : std::uint8_t { within_limit, near_limit, over_limit, shadow_mode };
inline constexpr std::array<std::string_view, 4> kEnvoyResults = {"within_limit", "near_limit", "over_limit",
                                                                  "shadow_mode"};

// Number of hits for each result.
struct EnvoyCounts {
  std::array<std::atomic<std::uint64_t>, kEnvoyResults.size()> hits{};

  void add(EnvoyResult result, std::uint64_t number) {
    hits[static_cast<std::size_t>(result)].fetch_add(number, std::memory_order_relaxed);
  }
};

struct EnvoySeries {
  std::string domain{};
  std::string descriptor{};
  std::array<std::uint64_t, kEnvoyResults.size()> hits{};
};

// Counts hits of the limits in Envoy's files, under the statistic names of the reference service.
//
// The files bound the names of their own limits. Names that contain request values are chosen by clients, so their
// number is bounded here, and hits beyond it count as `other`. A counter stays when a reload removes its limit.
class EnvoyTally {
 public:
  enum class Name : std::uint8_t { of_file, with_values };

  // Returns the counters of this name. Their address never changes.
  EnvoyCounts& counts(std::string_view domain, std::string_view descriptor, Name name) {
    const base::MutexLock lock(mutex_);
    const auto known = series_.find(std::pair(domain, descriptor));
    if (known != series_.end()) return known->second;
    const bool has_capacity =
        series_.size() < kEnvoySeriesMax && (name == Name::of_file || values_ < kEnvoyValueSeriesMax);
    if (!has_capacity) return series_[{std::string(domain), std::string(kEnvoyOther)}];
    if (name == Name::with_values) ++values_;
    return series_[{std::string(domain), std::string(descriptor)}];
  }

  std::vector<EnvoySeries> all() const {
    const base::MutexLock lock(mutex_);
    std::vector<EnvoySeries> out;
    for (const auto& [name, counts] : series_) {
      EnvoySeries& one = out.emplace_back(EnvoySeries{.domain = name.first, .descriptor = name.second});
      for (std::size_t i = 0; i < one.hits.size(); ++i) one.hits[i] = counts.hits[i].load(std::memory_order_relaxed);
    }
    return out;
  }

 private:
  struct Less {
    using is_transparent = void;
    using Views = std::pair<std::string_view, std::string_view>;
    bool operator()(const Views& a, const Views& b) const { return a < b; }
  };

  mutable base::Mutex mutex_;  // does not guard the counters in series_
  std::map<std::pair<std::string, std::string>, EnvoyCounts, Less> series_ GUARDED_BY(mutex_);
  std::size_t values_ GUARDED_BY(mutex_) = 0;
};

struct EnvoyView {
  std::shared_ptr<const EnvoyRules> rules{};  // null if there are no files
  std::vector<EnvoyCounts*> counts{};         // one for each rule, by its place
  bool counts_denied = false;                 // charge denied requests too, at most to full
  bool is_lifted = false;
};

class EnvoyInForce {
 public:
  EnvoyInForce() { store({}); }

  void put(std::shared_ptr<const EnvoyRules> rules, bool counts_denied = false) {
    EnvoyView next{.rules = std::move(rules), .counts_denied = counts_denied};
    if (next.rules != nullptr) {
      for (const EnvoyRule& rule : next.rules->rules()) {
        next.counts.push_back(&tally_.counts(rule.domain, rule.stat, EnvoyTally::Name::of_file));
      }
    }
    const base::MutexLock lock(mutex_);
    next.is_lifted = views_.load()->is_lifted;
    store(std::move(next));
  }

  void lift(bool is_lifted) {
    const base::MutexLock lock(mutex_);
    EnvoyView next = *views_.load();
    if (next.is_lifted == is_lifted) return;
    next.is_lifted = is_lifted;
    store(std::move(next));
  }

  // Updates a view if there is a newer one.
  void renew(std::shared_ptr<const EnvoyView>& view, std::uint64_t& version) const {
    const std::uint64_t newest = version_.load(std::memory_order_acquire);
    if (version == newest) return;
    view = views_.load();  // or a newer one, which is then loaded again
    version = newest;
  }

  EnvoyTally& tally() { return tally_; }
  const EnvoyTally& tally() const { return tally_; }
  std::atomic<std::uint64_t> unknown_domains{0};  // requests whose domain no file defines

 private:
  void store(EnvoyView next) REQUIRES(mutex_) {
    views_.store(std::make_shared<const EnvoyView>(std::move(next)));
    version_.fetch_add(1, std::memory_order_release);
  }

  EnvoyTally tally_;
  base::Mutex mutex_;  // serializes changes
  base::Snapshot<EnvoyView> views_;
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace weir::envoy
