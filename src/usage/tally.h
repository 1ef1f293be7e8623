// Counters by rule: how often each rule decided what, and when it last applied to a request.
//
// A rule has a number, by its name, for as long as the gate lives: if a rule is removed and added again, its counts
// continue. There are numbers for twice as many rules as a policy may have. When they run out, the rule that was
// removed longest ago loses its number. Each thread counts in its own copy, created at first use; reading adds the
// copies up. add() and read() from any thread, number_of() from one at a time. Tested by tests/rule_counts_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/stripe.h"
#include "weir/clock.h"
#include "weir/policy.h"

namespace weir::usage {

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

  // Call before the rules of a new policy request their numbers.
  void begin_policy() { ++policies_; }
  std::uint32_t number_of(std::string_view rule);

  // If there is no memory for a thread's first count of a rule, the count is lost.
  void add(std::uint32_t number, What what, Micros now, std::uint64_t n = 1) noexcept;
  // Records the time of a request that the rule applied to without deciding it, to 1 s. Usually writes nothing.
  void meet(std::uint32_t number, Micros now) noexcept;
  // Subtracts one count, on any thread. A thread's own counter may become negative, the sum does not.
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
    std::uint64_t policy = 0;  // the last policy with this rule
  };

  Cell* cell_of(std::uint32_t number) noexcept;
  std::uint32_t reuse_number();

  std::unique_ptr<std::array<Stripe, base::kStripes>> stripes_;
  std::uint64_t policies_ = 0;
  std::uint32_t numbers_ = kReserved;  // how many are assigned
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace weir::usage
