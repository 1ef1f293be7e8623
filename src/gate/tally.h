// Counts by rule: how often each decided what, and when a request last met it.
//
// Every rule has a number, by its name, for as long as the gate lives: a rule that was gone and comes back goes on
// counting where it was. There is room for twice as many as a policy may have; then the ones that are gone longest make
// room. Each thread counts in a copy of its own, which is made when it is first needed; to read is to add up. add() and
// read() from any thread, number_of() from one at a time. Tested by tests/usage_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "gate/stripe.h"
#include "weir/clock.h"
#include "weir/policy.h"

namespace weir {

class Tally {
 public:
  enum class What : std::uint8_t { allowed, denied, missing, shadow_allowed, shadow_denied };
  static constexpr std::size_t kWhats = 5;

  // Numbers that belong to no rule of a policy.
  static constexpr std::uint32_t kNoRule = 0, kSkipped = 1, kFailed = 2, kInline = 3, kByHand = 4, kAmbiguousPath = 5,
                                 kReserved = 6;

  struct Counts {
    std::array<std::uint64_t, kWhats> counts{};
    Micros last_hit{0};
    std::uint64_t operator[](What what) const { return counts[static_cast<std::size_t>(what)]; }
  };

  Tally();
  ~Tally();
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // A policy is about to be in force; its rules ask for their numbers next.
  void begin_policy() { ++policies_; }
  std::uint32_t number_of(std::string_view rule);

  // Without memory for a thread's first count of a rule it is lost.
  void add(std::uint32_t number, What what, Micros now, std::uint64_t n = 1) noexcept;
  // A request met the rule, which did not decide it: when, to a second. Most often nothing is written.
  void meet(std::uint32_t number, Micros now) noexcept;
  // One that was added is taken back, by whichever thread: what it counts by itself may be below 0, the sum is not.
  void take_back(std::uint32_t number, What what) noexcept { add(number, what, Micros{0}, UINT64_MAX); }
  Counts read(std::uint32_t number) const;

 private:
  static constexpr std::size_t kNumbersMax = 2 * kRulesMax + kReserved;
  static constexpr std::size_t kBlock = 256;
  static constexpr std::size_t kBlocks = (kNumbersMax + kBlock - 1) / kBlock;

  struct Cell {
    std::array<std::atomic<std::uint64_t>, kWhats> counts{};
    std::atomic<std::int64_t> last_hit{0};
  };
  struct Block {
    std::array<Cell, kBlock> cells{};
  };
  struct Stripe {
    std::array<std::atomic<Block*>, kBlocks> blocks{};
  };
  struct Known {
    std::uint32_t number = 0;
    std::uint64_t policy = 0;  // the last one that it was part of
  };

  Cell* cell_of(std::uint32_t number) noexcept;
  std::uint32_t make_room();

  std::unique_ptr<std::array<Stripe, kStripes>> stripes_;
  std::uint64_t policies_ = 0;
  std::uint32_t numbers_ = kReserved;  // so many were given away
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace weir
