// The rate limiter of one process: thread-safe, no exceptions, no globals.
//
//   auto limiter = weir::make_limiter("token_bucket", "10/s burst 50");
//   if (!limiter) return report(limiter.error().message);
//   auto decision = limiter->check("user:42");
//   if (decision && decision->allowed) serve();
//
// Every call that charges is one event: a request over several limits takes all of its permits or none.
// All members may be called from any thread at once. Tested by limiter_test.cc and store_contract_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

inline constexpr std::size_t kHoldIdBytesMax = 64;
inline constexpr std::size_t kChargesMax = 32;

struct LimiterOptions {
  std::shared_ptr<const Clock> clock{};  // null: the system's
  std::size_t keys_max = 1'000'000;      // live keys; a new key beyond them is an error, never forgiveness
};

class Limiter {
 public:
  // A limiter without a limit of its own: each call brings one.
  explicit Limiter(LimiterOptions options = {});
  // With one: calls that name none use it.
  Limiter(Limit own, LimiterOptions options);
  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;
  ~Limiter();

  Result<Decision> check(std::string_view key, std::int64_t cost = 1) noexcept;
  Result<Decision> check(std::string_view key, const Limit& limit, std::int64_t cost = 1) noexcept;

  // check_all()
  //
  // One request, several limits: all are charged or none is (but without memory, where an error may leave permits
  // spent). The same key and limit given twice are merged; the same key with two different limits is an error.
  Result<Verdict> check_all(std::span<const Charge> charges) noexcept;

  // check_many()
  //
  // Several requests, each on its own, with one reading of the clock, unless a key has seen a later one meanwhile.
  // Answers stand in order. Without memory for the answers the program ends.
  std::vector<Result<Decision>> check_many(std::span<const Charge> charges) noexcept;

  // peek()
  //
  // What a request of cost 0 is told. Changes nothing.
  Result<Decision> peek(std::string_view key) noexcept;
  Result<Decision> peek(std::string_view key, const Limit& limit) noexcept;

  // give_back()
  //
  // Returns permits, newest first, never beyond full.
  Result<Decision> give_back(std::string_view key, std::int64_t permits) noexcept;
  Result<Decision> give_back(std::string_view key, const Limit& limit, std::int64_t permits) noexcept;

  // reset()
  //
  // Forgets the key under every algorithm. True if there was anything to forget.
  Result<bool> reset(std::string_view key) noexcept;

  // acquire() and release()
  //
  // Permits in flight, for limits like `20 concurrent`. An id that is held already is renewed and, with
  // another cost, resized; a permit that nobody releases lapses by itself. release() is true if it was held.
  Result<Decision> acquire(std::string_view key, std::string_view id, std::int64_t cost = 1) noexcept;
  Result<Decision> acquire(std::string_view key, std::string_view id, const Limit& limit,
                           std::int64_t cost = 1) noexcept;
  Result<bool> release(std::string_view key, std::string_view id) noexcept;

  // Live keys, those among them that have lapsed but are not swept yet included.
  std::size_t size() const noexcept;
  // The time that the next decision is made at.
  Micros now() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// From text. Either part may come from a config file: an error says what is wrong with it.
Result<Limiter> make_limiter(std::string_view algorithm, std::string_view quota, LimiterOptions options = {}) noexcept;

}  // namespace weir
