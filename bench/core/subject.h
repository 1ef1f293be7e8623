// The subject of the measurement: the memory store with one limit, as the limiter uses it.
//
// A thin wrapper, so that all contestants look alike. An error ends the program, because there is no figure to report
// then. Any thread may call its members.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "core/keys.h"
#include "store/memory_store.h"
#include "weir/limit.h"

namespace weir::bench {

[[noreturn]] inline void die(const Error& error) {
  std::fprintf(stderr, "the store failed: %s\n", error.message.c_str());
  std::exit(1);
}

template <class T>
T value_or_die(Result<T> result) {
  if (!result) die(result.error());
  return std::move(*result);
}

class Subject {
 public:
  Subject(store::StoreOptions options, Limit limit, std::shared_ptr<const Clock> clock)
      : limit_(std::move(limit)),
        store_(value_or_die(store::MemoryStore::open(std::move(options), std::move(clock)))) {}

  bool check(std::string_view key, std::int64_t now) {
    const auto decision = store_->check({key, &limit_}, now);
    if (!decision) die(decision.error());
    return decision->allowed;
  }

  // Returns how many were allowed.
  std::size_t check_many(std::span<const std::string_view, kBatch> keys, std::int64_t now) {
    std::array<Charge, kBatch> charges;
    std::array<Result<Decision>, kBatch> answers;
    for (std::size_t i = 0; i < kBatch; ++i) charges[i] = {keys[i], &limit_};
    store_->check_many(charges, now, answers);
    std::size_t allowed = 0;
    for (const auto& answer : answers) {
      if (!answer) die(answer.error());
      allowed += answer->allowed ? 1u : 0u;
    }
    return allowed;
  }

  // One request over three keys.
  bool check_three(std::span<const std::string_view, 3> keys, std::int64_t now) {
    const std::array<Charge, 3> charges{{{keys[0], &limit_}, {keys[1], &limit_}, {keys[2], &limit_}}};
    const auto verdict = store_->charge(charges, now);
    if (!verdict) die(verdict.error());
    return verdict->allowed;
  }

  const store::MemoryStore& store() const { return *store_; }

 private:
  const Limit limit_;
  const std::unique_ptr<store::MemoryStore> store_;
};

}  // namespace weir::bench
