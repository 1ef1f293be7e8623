// The Nth allocation of a call fails, for every N until the call succeeds. Each time before, the call returns an error
// and admits nothing, and the limiter still works.

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>

#include "weir/gate.h"
#include "weir/limiter.h"

namespace {

thread_local long allocations_left = -1;  // negative: as many as there are

void* allocate(std::size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocations_left == 0 ? nullptr : allocate(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace weir {
namespace {

// Calls with 0, 1, 2 ... allocations until it succeeds; how often it did not.
template <class Call>
int failures_of(Call call) {
  for (long allowed = 0;; ++allowed) {
    allocations_left = allowed;
    const auto answer = call();
    allocations_left = -1;
    if (answer) return static_cast<int>(allowed);
    EXPECT_EQ(answer.error().code, ErrorCode::exhausted) << answer.error().message;
  }
}

TEST(OutOfMemory, IsAnErrorThatFreesNothing) {
  const std::string key(200, 'k'), other(200, 'o');
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    Limiter limiter({.clock = std::make_shared<ManualClock>(Micros{1'794'701'843'991'953})});
    const Limit limit = compile("1000/hour", algorithm).value();
    EXPECT_GT(failures_of([&] { return limiter.check(key, limit, 1); }), 0);
    EXPECT_EQ(limiter.size(), 1u) << to_string(algorithm);
    const Charge charges[] = {{key, &limit, 1}, {other, &limit, 1}};
    EXPECT_GT(failures_of([&] { return limiter.check_all(charges); }), 0);
    EXPECT_EQ(limiter.size(), 2u) << to_string(algorithm);
    EXPECT_LE(limiter.peek(key, limit)->remaining, 998);
    EXPECT_LE(limiter.peek(other, limit)->remaining, 999);
  }
}

// If memory ends while the limit of a key changes, the key keeps what it has used, for as long as the new limit counts
// it.
TEST(OutOfMemory, KeepsAKeyWhoseLimitChanged) {
  const auto clock = std::make_shared<ManualClock>(Micros{1'794'701'843'991'953});
  const Limit second = compile("10/s burst 10").value(), hour = compile("10/hour burst 10").value();
  for (long allowed = 0; allowed < 20; ++allowed) {
    Limiter limiter({.clock = clock});
    const std::string key(200, 'k');
    limiter.check(key, second, 10);
    const Charge charges[] = {{key, &hour, 1}, {"other", &hour, 0}};
    allocations_left = allowed;
    static_cast<void>(limiter.check_all(charges));
    allocations_left = -1;
    clock->advance(Micros{2'000'000});
    const std::int64_t before = limiter.peek(key, hour)->remaining;
    for (int i = 0; i < 10'000; ++i) limiter.check("n" + std::to_string(i), hour, 1);  // sweeps
    EXPECT_EQ(limiter.peek(key, hour)->remaining, before) << allowed;
  }
}

TEST(OutOfMemory, LosesNoPermitInFlight) {
  Limiter limiter({.clock = std::make_shared<ManualClock>()});
  const Limit limit = compile("5 concurrent").value();
  const std::string id(60, 'i');
  EXPECT_GT(failures_of([&] { return limiter.acquire("k", id, limit, 2); }), 0);
  EXPECT_EQ(limiter.peek("k", limit)->remaining, 3);
  EXPECT_TRUE(*limiter.release("k", id));
  EXPECT_EQ(limiter.peek("k", limit)->remaining, 5);
}

// Without memory, requests are answered but not counted for the busiest keys. With memory, the key is found again.
TEST(OutOfMemory, LeavesTheWatchOfKeysWhole) {
  Limiter limiter({.clock = std::make_shared<ManualClock>(Micros{1'794'701'843'991'953})});
  Gate gate(limiter);
  ASSERT_TRUE(gate.apply(*parse_policy("rules: [{name: a, per: user, limit: 1000/hour}]", "test.yaml")));
  for (long allowed = 0; allowed < 40; ++allowed) {
    allocations_left = allowed;
    static_cast<void>(gate.check({.user = "alice"}));
    allocations_left = -1;
    static_cast<void>(gate.top_keys(TopBy::hits, "", 10));
  }
  const auto keys = gate.top_keys(TopBy::hits, "", 10);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(keys[0].key, "user:alice");
}

}  // namespace
}  // namespace weir
