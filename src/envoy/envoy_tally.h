// How often the limits of Envoy's files were met, by the names that the reference service gives its statistics.
//
// The names of the files' limits are as many as the files say. Names that hold values of requests are made by whoever
// asks, so there are only so many: the rest count as `other`. What was counted once stays, also when a reload takes its
// limit away. Any thread. Tested by envoy_tally_test.cc.
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

inline constexpr std::size_t kEnvoySeriesMax = 20'000;      // in all
inline constexpr std::size_t kEnvoyValueSeriesMax = 1'000;  // of names with values
inline constexpr std::string_view kEnvoyOther = "other";

enum class EnvoyResult : std::uint8_t { within_limit, near_limit, over_limit, shadow_mode };
inline constexpr std::array<std::string_view, 4> kEnvoyResults = {"within_limit", "near_limit", "over_limit",
                                                                  "shadow_mode"};

// Hits, by what became of them.
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

  // Those of this name, which stay where they are.
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

  mutable std::mutex mutex_;  // guards what follows, but not the numbers
  std::map<std::pair<std::string, std::string>, EnvoyCounts, Less> series_;
  std::size_t values_ = 0;
};

}  // namespace weir
