// How a contestant of the speed parts is made: a source of keys, batch after batch, and what to do with each batch.
//
// The maps and the store get one reading of the clock for a batch of sixteen, and all count what they allowed: a denial
// writes nothing and would flatter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/keys.h"
#include "core/subject.h"
#include "kit/pair.h"
#include "kit/report.h"
#include "kit/rounds.h"
#include "weir/clock.h"
#include "weir/limit.h"

namespace weir::bench {

// `visit(batch)` makes `requests` requests of a batch and returns how many were allowed. A round is `batches` batches.
struct Load {
  std::size_t batches;
  std::size_t requests = kBatch;
};

inline void expect_all(std::size_t allowed, std::size_t asked) {
  if (allowed != asked) std::fprintf(stderr, "%zu of %zu allowed: distrust the figures\n", allowed, asked);
}

template <class Source, class Visit>
Contestant one_thread(std::string name, Load load, Source source, Visit visit) {
  const std::size_t asked = load.batches * load.requests;
  return {std::move(name), asked, [=]() mutable {
            std::size_t allowed = 0;
            for (std::size_t i = 0; i < load.batches; ++i) allowed += visit(source.next());
            expect_all(allowed, asked);
          }};
}

// The same on two threads, each with a source of its own; the figure counts the requests of both.
template <class Source, class Visit>
Contestant two_threads(std::string name, Load load, Source first, Source second, Visit visit) {
  struct alignas(128) Side {  // nothing of one shares a line with the other
    Source source;
    Visit visit;
    std::size_t asked = 0, allowed = 0;
  };
  const auto left = std::make_shared<Side>(Side{std::move(first), visit});
  const auto right = std::make_shared<Side>(Side{std::move(second), visit});
  return {std::move(name), [=] {
            const double ns = pair_ns(load.batches * load.requests, load.requests, [&](int thread) {
              Side& side = thread == 0 ? *left : *right;
              side.allowed += side.visit(side.source.next());
              side.asked += load.requests;
            });
            expect_all(left->allowed + right->allowed, left->asked + right->asked);
            return ns;
          }};
}

// Asks for each key by itself; `check(key, now)` says whether it is allowed.
template <class Check>
auto one_by_one(const Clock& clock, Check check) {
  return [&clock, check](const KeyBatch& batch) {
    std::size_t allowed = 0;
    const std::int64_t now = clock.now().count();
    for (const std::string_view key : batch.keys) allowed += check(key, now) ? 1u : 0u;
    return allowed;
  };
}

template <class Map>
auto in_map(Map& map, const Limit& limit, const Clock& clock) {
  return one_by_one(clock, [&](std::string_view key, std::int64_t now) { return map.check(key, limit, now).allowed; });
}
inline auto alone(Subject& subject, const Clock& clock) {
  return one_by_one(clock, [&](std::string_view key, std::int64_t now) { return subject.check(key, now); });
}
inline auto in_batches(Subject& subject, const Clock& clock) {
  return [&](const KeyBatch& batch) { return subject.check_many(batch.keys, clock.now().count()); };
}

// Millions a second from nanoseconds for one.
inline double millions(const Contestant& contestant) { return 1e3 / contestant.figure(); }

inline Row row_of(const Contestant& contestant) { return {contestant.name(), contestant.figure(), "ns"}; }

// What a contestant costs in times of a rival's cost, and how many times as fast it is.
inline Row cost_row(const Contestant& subject, const Contestant& rival, std::optional<Bar> bar) {
  return {subject.name(), subject.figure(), "ns", Rival{rival.name(), rival.figure()}, bar};
}
inline Row speed_row(const Contestant& subject, const Contestant& rival, std::optional<Bar> bar) {
  return {subject.name(), millions(subject), "M/s", Rival{rival.name(), millions(rival)}, bar};
}

}  // namespace weir::bench
