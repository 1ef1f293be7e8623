// Counts hits of the limits in Envoy's files, under the statistic names of the reference service.
//
// The files bound the names of their own limits. Names that contain request values are chosen by clients, so their
// number is bounded here, and hits beyond it count as `other`. A counter stays when a reload removes its limit. Any
// thread may call it. Tested by envoy_tally_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir {

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

class EnvoyTally {
 public:
  enum class Name : std::uint8_t { of_file, with_values };

  // Returns the counters of this name. Their address never changes.
  EnvoyCounts& counts(std::string_view domain, std::string_view descriptor, Name name) {
    const std::lock_guard lock(mutex_);
    const auto known = series_.find(std::pair(domain, descriptor));
    if (known != series_.end()) return known->second;
    const bool has_room = series_.size() < kEnvoySeriesMax && (name == Name::of_file || values_ < kEnvoyValueSeriesMax);
    if (!has_room) return series_[{std::string(domain), std::string(kEnvoyOther)}];
    if (name == Name::with_values) ++values_;
    return series_[{std::string(domain), std::string(descriptor)}];
  }

  std::vector<EnvoySeries> all() const {
    const std::lock_guard lock(mutex_);
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

  mutable std::mutex mutex_;  // guards the members below, but not the counters
  std::map<std::pair<std::string, std::string>, EnvoyCounts, Less> series_;
  std::size_t values_ = 0;
};

}  // namespace weir
