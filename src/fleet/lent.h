// Permits in flight that a node gave out while Redis could not be asked, until Redis knows of them.
//
// Whoever tells Redis takes some, and says how that went; one that is released between may reach Redis first as
// released, then as taken: told() says that it must be told once more. Bounded: beyond so many, Redis is not told, and
// they are in flight beside its own until they end. Any thread. Tested by lent_test.cc and
// tests/fleet_faults_settle_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/verdict.h"

namespace weir {

struct LentPermit {
  std::string key{}, id{};
  Limit limit{};  // the whole one
  std::int64_t cost = 0;
  Micros until{0};  // monotonic: then it lapses
};

class Lent {
 public:
  explicit Lent(std::size_t most) : most_(most) {}
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  void add(LentPermit permit);
  void release(std::string_view key, std::string_view id);
  void forget(std::string_view key);

  // Some that Redis has not been told of and that have not lapsed; each comes once, until told().
  std::vector<LentPermit> take(std::size_t most, Micros now);
  // True if it was released meanwhile. Unless Redis knows, it comes again.
  bool told(const LentPermit& permit, bool is_known);

  // False if there may be some to take. Costs nothing.
  bool is_empty() const { return waiting_count_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Entry {
    LentPermit permit;
    bool is_taken = false, is_released = false;
  };

  static std::string name_of(std::string_view key, std::string_view id);
  void wait(std::string name);

  const std::size_t most_;
  std::atomic<std::size_t> waiting_count_{0};
  std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Entry> entries_;
  std::vector<std::string> waiting_;  // names, of which some may have gone
};

}  // namespace weir
