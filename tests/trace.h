// Traces: what is asked of one key, and what the oracle answers. Random ones from a seed, and every small one.
//
// The oracle makes a trace: the next time and cost depend on its last answer (just before a wait is over, at its end,
// one permit too many ...). Then any engine replays it. A difference is reported with the operations before it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine.h"
#include "seed.h"

namespace weir::test {

struct Op {
  enum class Kind : std::uint8_t { check, refund, acquire, release, change };
  Kind kind = Kind::check;
  std::int64_t now = 0;
  std::int64_t cost = 1;
  std::int64_t at = 0;    // refund: when it was charged
  std::string id{};       // acquire, release
  std::size_t limit = 0;  // change: its place in the trace's limits
  Decision answer{};      // the oracle's; of a release only `allowed`
};

struct Trace {
  std::uint64_t seed = 0;
  std::vector<Limit> limits{};  // the first rules at the start
  std::vector<Op> ops{};
};

enum class Time : std::uint8_t { forward, both_ways };

// As many ops as asked for, with limits and costs of every size.
Trace random_trace(Algorithm algorithm, std::uint64_t seed, std::size_t ops, Time time);
// The same requests, with the answers of the C++: for tests that look at properties and need no referee.
Trace random_requests(Algorithm algorithm, std::uint64_t seed, std::size_t ops);
// Windows of a calendar.
Trace random_calendar_trace(std::uint64_t seed, std::size_t ops, Time time);
// A log that counts past 2^53 in all.
Trace long_log_trace();

// The smallest and the largest permits, periods, bursts, costs and times, all with all.
std::vector<Trace> boundary_traces(Algorithm algorithm);

// Asks the engine one op. The answer of a release is only its `allowed`.
Decision ask(Engine& engine, const Trace& trace, const Op& op);

// The first difference between an engine that starts fresh and the trace's answers, with what led to it.
std::optional<std::string> replay(const Trace& trace, Engine& engine);

// Walks every sequence of at most `length` ops over a small alphabet of times, costs and limit changes, on all engines
// at once; the first difference, if any. `walked` counts the sequences.
std::optional<std::string> walk_small_traces(const std::vector<Limit>& limits, int length,
                                             std::vector<std::unique_ptr<Engine>> engines, std::uint64_t& walked);

// Two small limits of the algorithm to walk on, several variants.
std::vector<std::vector<Limit>> small_limits(Algorithm algorithm);

}  // namespace weir::test
