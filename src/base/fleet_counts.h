// What a node of a fleet counts since its start. The store counts, and the server reports these numbers as they are.
//
// Any thread may add to a SharedCount, and copy one. PipelineCounts are plain numbers that one thread counts, or sums
// of those (fleet/pipeline_totals.h). Tested by tests/fleet_acl_test.cc and tests/fleet_seam_step_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weir::base {

// A number that several threads add to. A copy has its value of that moment.
class SharedCount {
 public:
  SharedCount() = default;
  SharedCount(const SharedCount& other) noexcept : value_(other.get()) {}
  SharedCount& operator=(const SharedCount& other) noexcept {
    value_.store(other.get(), std::memory_order_relaxed);
    return *this;
  }
  ~SharedCount() = default;
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

struct FleetCounts {
  SharedCount strict{};          // verdicts by Redis
  SharedCount cached{};          // cached denials
  SharedCount fallback{};        // verdicts by the fallback
  SharedCount shed{};            // of those, overload denials of keys of unknown state
  SharedCount refunds{};         // parts of denied requests that were refunded
  SharedCount failed_refunds{};  // of those, refunds that failed: they expire
};

struct PipelineCounts {
  std::uint64_t requests = 0;          // submitted
  std::uint64_t calls = 0;             // sent
  std::uint64_t answered = 0;          // requests
  std::uint64_t failed = 0;            // requests
  std::uint64_t refused = 0;           // requests: Redis replied with an error to the request itself
  std::uint64_t timeouts = 0;          // requests
  std::uint64_t late = 0;              // calls that the script refused as too late
  std::uint64_t unsent = 0;            // requests not queued, as too many were waiting
  std::uint64_t breaker_openings = 0;  // of the breaker
  std::uint64_t connects = 0;          // to a server of Redis

  static constexpr std::array kMembers = {
      &PipelineCounts::requests,         &PipelineCounts::calls,    &PipelineCounts::answered, &PipelineCounts::failed,
      &PipelineCounts::refused,          &PipelineCounts::timeouts, &PipelineCounts::late,     &PipelineCounts::unsent,
      &PipelineCounts::breaker_openings, &PipelineCounts::connects};
};
static_assert(sizeof(PipelineCounts) == sizeof(std::uint64_t) * 10, "kMembers has them all");

}  // namespace weir::base
