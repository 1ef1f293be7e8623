// The most frequent and most denied keys of each rule, over the last minute or two.
//
// Memory is bounded, however many keys clients send. Each thread has its own sketches (space_saving.h) for the first
// kOwnMax rules that it meets in a minute, and one for all others: at most some 2 MiB per thread. It keeps two
// generations of one minute, the current and the previous one. At high rates it looks at a sample only: then most
// requests cost a few additions in their own thread's memory, without a lock. The others take the lock of their
// thread's part, which otherwise only readers take. Time is an argument. Any thread. Tested by
// tests/rule_counts_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/stripe.h"
#include "usage/space_saving.h"
#include "weir/rule_counts.h"
#include "weir/verdict.h"

namespace weir::usage {

// Chooses which of many events to look at. In each second, the first 10,000 events count for themselves. After that
// one in 16 counts for 16, and beyond 100,000 one in 64 for 64. The gaps are random around that, so that periodic
// traffic does not bias the sample. One thread.
struct Sampler {
  static constexpr std::uint32_t kAll = 10'000;
  static constexpr std::uint32_t kMany = 100'000;

  std::int64_t second = 0;
  std::uint32_t seen = 0;  // in this second
  std::uint32_t skip = 0;  // how many more to skip
  std::uint64_t noise = 0x9e3779b97f4a7c15;

  void begin(Micros now) {
    const std::int64_t is = now.count() / 1'000'000;
    if (is == second) return;
    second = is;
    seen = skip = 0;
  }

  // The weight of the next event; 0: skip it.
  std::uint32_t weigh() {
    if (seen < UINT32_MAX) ++seen;
    if (seen <= kAll) return 1;
    if (skip > 0) {
      --skip;
      return 0;
    }
    const std::uint32_t weight = seen <= kMany ? 16 : 64;
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    skip = static_cast<std::uint32_t>(noise >> 33) % (2 * weight - 1);
    return weight;
  }
};

class Watch {
 public:
  static constexpr std::size_t kPlaces = 128;  // keys per rule and thread
  static constexpr std::size_t kOwnMax = 24;   // rules
  static constexpr Micros kGeneration{60'000'000};

  // A key of a rule; the rule is its number in the tally.
  struct Met {
    std::uint32_t rule = 0;
    std::string_view key{};
    bool is_denied = false;
    bool is_hit = true;  // false: the hit was added before, and was denied after all
  };
  // One result of find(): `count` is of hits or of denials, as requested.
  struct Found {
    std::uint32_t rule = 0;
    std::string key{};
    std::uint64_t mark = 0;
    bool is_cut = false;
    std::uint64_t count = 0, error = 0;
  };

  explicit Watch(Micros now);
  ~Watch();

  // How many events this one counts for; 0: do not add it.
  std::uint32_t weigh(Micros now) noexcept;
  void add(std::span<const Met> met, std::uint32_t weight, Micros now) noexcept;
  // Many events of one rule; chooses which of them to look at.
  void add_many(std::uint32_t rule, std::span<const Charge> charges, std::span<const Result<Decision>> answers,
                Micros now) noexcept;

  // All known keys, unordered.
  std::vector<Found> find(TopBy by, Micros now) const;
  // How far back find() reaches.
  Micros covers(Micros now) const;
  std::size_t bytes() const;  // bytes in use

 private:
  static std::string_view key_to_show(const Charge& charge);
  using Sketch = SpaceSaving<kPlaces>;
  struct Pair {
    Sketch hits, denied;
  };
  struct Generation {
    std::int64_t number = -1;
    std::vector<std::uint8_t> places{};          // by rule: its own pair, from 1; 0: it uses the shared first one
    std::vector<std::unique_ptr<Pair>> pairs{};  // reused from one minute to the next
    std::size_t used = 0;                        // pairs in use
    Pair& pair_of(std::uint32_t rule);
    void begin(std::int64_t at);
  };
  struct alignas(64) Stripe {
    std::atomic<std::int64_t> second{0};  // the sampler's
    std::atomic<std::uint32_t> seen{0}, skip{0};
    std::atomic<std::uint64_t> noise{0x9e3779b97f4a7c15};
    base::Mutex writing;
    std::array<Generation, 2> generations GUARDED_BY(writing){};
  };

  static std::int64_t number_of(Micros now) { return now / kGeneration; }
  static Sampler load(const Stripe& stripe);
  static void store(Stripe& stripe, const Sampler& sampler);
  static Generation& generation(Stripe& stripe, Micros now) REQUIRES(stripe.writing);
  void put(Generation& generation, const Met& met, std::uint32_t weight) const;

  const std::uint64_t secret_;
  const Micros began_;
  std::unique_ptr<std::array<Stripe, base::kStripes>> stripes_;
};

}  // namespace weir::usage
