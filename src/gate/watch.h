// Who is met, and who is denied, most often: the keys of each rule over the last minute or two.
//
// Memory is bounded whatever clients send: each thread has sketches (space_saving.h) for the first kOwnMax rules that
// it meets in a minute, and one for all others; at most some 2 MiB a thread. Two generations of a minute are kept, the
// present and the one before. At high rates only a sample is looked at (sampler.h): most requests then cost a few
// additions on memory of their own thread, no lock. The others take the lock of their thread's part, which nobody else
// wants but who reads. Time comes as an argument. Any thread. Tested by tests/usage_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gate/sampler.h"
#include "gate/stripe.h"
#include "space_saving.h"
#include "weir/usage.h"
#include "weir/verdict.h"

namespace weir {

class Watch {
 public:
  static constexpr std::size_t kPlaces = 128;  // keys of a rule and thread
  static constexpr std::size_t kOwnMax = 24;   // rules
  static constexpr Micros kGeneration{60'000'000};

  // A key of a rule, by its number in the tally.
  struct Met {
    std::uint32_t rule = 0;
    std::string_view key{};
    bool is_denied = false;
  };
  // What is told of one: `count` of what was asked for.
  struct Found {
    std::uint32_t rule = 0;
    std::string key{};
    std::uint64_t mark = 0;
    bool is_cut = false;
    std::uint64_t count = 0, error = 0;
  };

  explicit Watch(Micros now);
  ~Watch();

  // For how many this event stands; 0: do not add it.
  std::uint32_t weigh(Micros now) noexcept;
  void add(std::span<const Met> met, std::uint32_t weight, Micros now) noexcept;
  // That one which was added before was denied after all.
  void add_denial(const Met& met, std::uint32_t weight, Micros now) noexcept;
  // Many events of one rule, of which those that are to be looked at are picked here.
  void add_many(std::uint32_t rule, std::span<const Charge> charges, std::span<const Result<Decision>> answers,
                Micros now) noexcept;

  // All keys that are known, in no order.
  std::vector<Found> find(TopBy by, Micros now) const;
  // How long ago the time began that find() tells of.
  Micros covers(Micros now) const;
  std::size_t bytes() const;  // that it holds now

 private:
  static std::string_view key_to_show(const Charge& charge);
  using Sketch = SpaceSaving<kPlaces>;
  struct Pair {
    Sketch hits, denied;
  };
  struct Generation {
    std::int64_t number = -1;
    std::vector<std::uint8_t> places{};          // of each rule: its own pair, from 1; 0: it shares the first
    std::vector<std::unique_ptr<Pair>> pairs{};  // used again from one minute to the next
    std::size_t used = 0;                        // of the pairs
    Pair& pair_of(std::uint32_t rule);
    void begin(std::int64_t at);
  };
  struct alignas(64) Stripe {
    std::atomic<std::int64_t> second{0};  // the sampler's
    std::atomic<std::uint32_t> seen{0}, skip{0};
    std::atomic<std::uint64_t> noise{0x9e3779b97f4a7c15};
    std::mutex writing;  // of the rest
    std::array<Generation, 2> generations{};
  };

  static std::int64_t number_of(Micros now) { return now / kGeneration; }
  static Sampler load(const Stripe& stripe);
  static void store(Stripe& stripe, const Sampler& sampler);
  static Generation& generation(Stripe& stripe, Micros now);
  void put(Generation& generation, const Met& met, std::uint32_t weight) const;

  const std::uint64_t secret_;
  const Micros began_;
  std::unique_ptr<std::array<Stripe, kStripes>> stripes_;
};

}  // namespace weir
