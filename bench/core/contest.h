// Makes the contestants for the measurements of speed: a source of keys, batch after batch, and what to do with each
// batch.
//
// The maps and the store read the clock once for a batch of sixteen. Each contestant counts the allowed requests: a
// denial writes nothing, so it would make the figures too good.
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

// A round has `batches` batches. `visit(batch)` makes `requests` requests of a batch and returns how many were allowed.
struct Load {
  std::size_t batches;
  std::size_t requests = kBatch;
};

inline void expect_all(std::size_t allowed, std::size_t asked) {
  if (allowed != asked)
    std::fprintf(stderr, "only %zu of %zu requests were allowed: do not trust the figures\n", allowed, asked);
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

// The same on two threads, each with its own source. The figure counts the requests of both threads.
template <class Source, class Visit>
Contestant two_threads(std::string name, Load load, Source first, Source second, Visit visit) {
  struct alignas(128) Side {  // the threads share no cache line
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

// Checks each key separately; `check(key, now)` returns whether the request is allowed.
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

// Millions of requests per second, from nanoseconds per request.
inline double millions(const Contestant& contestant) { return 1e3 / contestant.figure(); }

inline Row row_of(const Contestant& contestant) { return {contestant.name(), contestant.figure(), "ns"}; }

// A row that compares the times of two contestants, or their speeds.
inline Row cost_row(const Contestant& subject, const Contestant& rival, std::optional<Bar> bar) {
  return {subject.name(), subject.figure(), "ns", Rival{rival.name(), rival.figure()}, bar};
}
inline Row speed_row(const Contestant& subject, const Contestant& rival, std::optional<Bar> bar) {
  return {subject.name(), millions(subject), "M/s", Rival{rival.name(), millions(rival)}, bar};
}

}  // namespace weir::bench
