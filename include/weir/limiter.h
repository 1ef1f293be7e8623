// The rate limiter of one process: thread-safe, no exceptions, no globals.
//
//   auto limiter = weir::make_limiter("token_bucket", "10/s burst 50");
//   if (!limiter) return report(limiter.error().message);
//   auto decision = limiter->check("user:42");
//   if (decision && decision->allowed) serve();
//
// Every call that charges is atomic: a request over several limits is charged for all of them or for none. With a
// state file (open_limiter) the state survives the process, and several processes share it. Any thread may call any
// member at any time. Do not use a limiter that was moved from. Tested by limiter_test.cc, wait_test.cc and
// store_contract_test.cc; the guide is docs/embed.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::store {
class Store;
}  // namespace weir::store

namespace weir {

inline constexpr std::size_t kHoldIdBytesMax = 64;
inline constexpr std::size_t kRequestIdBytesMax = 64;  // of idempotency ids and reservations
inline constexpr Micros kRequestIdLasts{600'000'000};

// Which thread removes keys whose limit is full again: the limiter's own, a slice at a time, or the caller's through
// sweep().
enum class Sweeping : std::uint8_t { in_background, by_hand };

struct LimiterOptions {
  std::shared_ptr<const Clock> clock{};  // null: the system's; on a file, the clock that all its processes share
  std::size_t keys = 0;                  // capacity in live keys; 0: 1,000,000, or that of the file
  std::size_t log_bytes = 0;             // for the events of sliding logs; 0: in proportion to the keys
  std::size_t memory = 0;                // total bytes: sets those of the two above that are 0; 0: no total
  std::string file{};                    // state file; empty: the state is in this process only
  Sweeping sweeping = Sweeping::in_background;
  std::size_t waiters_max = 10'000;        // callers that may wait at once; 1,000,000 at most
  std::shared_ptr<store::Store> shared{};  // shares limits with other processes; null: no sharing
};

// Identifies a waiting call; 0 identifies none.
using WaitId = std::uint64_t;
// Never empty. It must not throw or block: the same thread serves other waiters.
using WaitCallback = std::function<void(Result<Decision>)>;

struct WaitOptions {
  std::int64_t cost = 1;
  std::stop_token stop{};  // ends the wait with an error when a stop is requested
};

struct ReserveOptions {
  std::string_view id{};           // the caller's own; empty: the limiter makes a random one
  Micros lasts = kRequestIdLasts;  // time to settle it; some 2 min more may be granted. Then it stays charged
};

struct Reservation {
  Verdict verdict{};  // nothing is reserved if this denies
  std::string id{};   // for commit() or cancel()
};

struct LimiterStats {
  std::uint64_t keys = 0;       // live keys, as size()
  std::uint64_t capacity = 0;   // places for keys; beyond some 90 % new keys evict others
  std::uint64_t evicted = 0;    // keys evicted before their limit was full again
  std::uint64_t early = 0;      // requests of new keys, denied because of what evicted keys had used
  std::uint64_t no_room = 0;    // requests denied because a ticket, a log or permits in flight did not fit
  std::uint64_t bytes = 0;      // of the whole table
  std::uint64_t compacted = 0;  // sliding_log logs that became two counters, because the arena for logs was full
};

class Limiter {
 public:
  // A limiter without a limit of its own: each call passes one. In memory only. Aborts the program if the options
  // name a file or memory runs out; open_limiter() returns an error instead.
  explicit Limiter(LimiterOptions options = {});
  // With a limit of its own, which calls without a limit use.
  Limiter(Limit own, LimiterOptions options);
  Limiter(Limiter&&) noexcept;
  Limiter& operator=(Limiter&&) noexcept;
  ~Limiter();

  Result<Decision> check(std::string_view key, std::int64_t cost = 1) noexcept;
  Result<Decision> check(std::string_view key, const Limit& limit, std::int64_t cost = 1) noexcept;

  // check_all()
  //
  // One request, several limits: charges all or none (but if memory runs out, an error may leave permits charged).
  // Equal keys with equal limits are merged; one key with two different limits is an error.
  Result<Verdict> check_all(std::span<const Charge> charges) noexcept;

  // check_once()
  //
  // check_all() made idempotent. If a request with this id was allowed before, this one is allowed, returns the
  // current state of the keys, and is charged nothing. The id is bound to the keys, algorithms and costs: with others
  // it is another request. Ids expire after `lasts`.
  Result<Verdict> check_once(std::string_view id, std::span<const Charge> charges,
                             Micros lasts = kRequestIdLasts) noexcept;

  // overdraw()
  //
  // Charges as much as fits into each limit, and never denies. For what has already happened, such as a
  // login that another limit denied.
  Result<Verdict> overdraw(std::span<const Charge> charges) noexcept;

  // check_many()
  //
  // Several independent requests, decided with one reading of the clock, unless a key has seen a later time
  // meanwhile. Results are in the order of the charges. Aborts the program if there is no memory for the results.
  std::vector<Result<Decision>> check_many(std::span<const Charge> charges) noexcept;
  // The same, reusing the memory of `answers`. Returns the time that was read.
  Micros check_many(std::span<const Charge> charges, std::vector<Result<Decision>>& answers) noexcept;

  // peek()
  //
  // What a check of cost 0 would return. Changes nothing.
  Result<Decision> peek(std::string_view key) noexcept;
  Result<Decision> peek(std::string_view key, const Limit& limit) noexcept;

  // preview()
  //
  // What a check of this cost would return, except that `remaining` is what is left before the charge. Changes
  // nothing, even if the state belongs to another version of the limit.
  Result<Decision> preview(std::string_view key, const Limit& limit, std::int64_t cost = 1) noexcept;
  // The same with the charge's fallback, for a fleet whose Redis is unavailable.
  Result<Decision> preview(const Charge& charge) noexcept;

  // refund()
  //
  // Refunds permits, newest first, at most until nothing is used.
  Result<Decision> refund(std::string_view key, std::int64_t permits) noexcept;
  Result<Decision> refund(std::string_view key, const Limit& limit, std::int64_t permits) noexcept;

  // reset()
  //
  // Deletes the key under every algorithm. True if there was anything to delete.
  Result<bool> reset(std::string_view key) noexcept;

  // acquire() and release()
  //
  // Permits in flight, for limits such as `20 concurrent`. acquire() with an id that already has a permit renews it
  // and, with another cost, resizes it. A permit that is never released expires by itself. release() returns true if
  // the id had a permit.
  Result<Decision> acquire(std::string_view key, std::string_view id, std::int64_t cost = 1) noexcept;
  Result<Decision> acquire(std::string_view key, std::string_view id, const Limit& limit,
                           std::int64_t cost = 1) noexcept;
  Result<bool> release(std::string_view key, std::string_view id) noexcept;

  // wait()
  //
  // Blocks until the permits are available, and charges them. If they cannot be available by the deadline, a time of
  // now(), it returns at once, denied; `retry_after` is when they could be available if no other caller charges the
  // key. Waiters for one key are served in order of arrival. For a leaky bucket, it also waits for the delay. Too
  // many waiters, a requested stop and the end of the limiter are errors. A denial or an error leaves nothing charged.
  Result<Decision> wait(std::string_view key, Micros deadline, const WaitOptions& options = {}) noexcept;
  Result<Decision> wait(std::string_view key, const Limit& limit, Micros deadline,
                        const WaitOptions& options = {}) noexcept;

  // wait_async()
  //
  // wait() with a callback, which runs exactly once in every case. If the result is already known, it runs within
  // this call, and the call returns 0. Otherwise it runs later, on the limiter's own thread. It must not destroy the
  // limiter.
  WaitId wait_async(std::string_view key, Micros deadline, WaitCallback callback, std::int64_t cost = 1) noexcept;
  WaitId wait_async(std::string_view key, const Limit& limit, Micros deadline, WaitCallback callback,
                    std::int64_t cost = 1) noexcept;

  // cancel_wait()
  //
  // True if the wait was still pending: cancel_wait() has then run its callback, with an error. False if the limiter's
  // thread has run the callback or is running it.
  bool cancel_wait(WaitId id) noexcept;
  // How many calls wait now, in either form.
  std::size_t waiting() const noexcept;

  // reserve(), commit() and cancel()
  //
  // For work whose cost is known only afterwards. reserve() charges what the work may cost; commit() settles the
  // actual cost. Both name the same keys and limits (16 at most), commit() with the actual costs. Excess is refunded
  // as of the time of the reservation: a window that has ended refunds nothing, a bucket only what cannot have
  // drained since. A shortfall is charged now, at most to full. cancel() settles for 0, whatever costs it receives. A
  // reservation can be settled once, by any process on the same file.
  Result<Reservation> reserve(std::span<const Charge> charges, const ReserveOptions& options = {}) noexcept;
  Result<Verdict> commit(std::string_view id, std::span<const Charge> actual) noexcept;
  Result<Verdict> cancel(std::string_view id, std::span<const Charge> reserved) noexcept;

  // sweep()
  //
  // Does a slice of the work that Sweeping::by_hand leaves to the caller: up to 24,000 keys, well below 1 ms. True at
  // the end of a round through all keys; then rest for about a second.
  bool sweep() noexcept;

  // Live keys, including expired keys that are not swept yet.
  std::size_t size() const noexcept;
  // How full the table is, and what it evicted. For a file: by all its processes, since the file was made.
  LimiterStats stats() const noexcept;
  // The time that the next decision will use.
  Micros now() const noexcept;
  // How many processes share its limits through LimiterOptions::shared, as far as known; 0: it shares with none.
  std::uint32_t nodes() const noexcept;

 private:
  friend class Gate;  // passes sound limits and keys, and memory for the decisions
  // check_all() into the caller's array. Returns whether the request is allowed; `now` is set to the time that was
  // read.
  Result<bool> charge_into(std::span<const Charge> charges, std::span<Decision> decisions, Micros& now) noexcept;
  Result<bool> reset_rule_key(std::string_view key) noexcept;
  // check_once(), with a name that the caller has already bound to the charges (once_name.h).
  Result<Verdict> charge_once(std::string_view name, std::span<const Charge> charges) noexcept;

  struct Impl;
  explicit Limiter(std::unique_ptr<Impl> impl);
  friend Result<Limiter> open_limiter(std::optional<Limit> own, LimiterOptions options) noexcept;
  std::unique_ptr<Impl> impl_;
};

// open_limiter()
//
// Opens a limiter in memory or, if the options name a file, on that file; with a limit of its own or without. Creates
// a missing file. If the file cannot be used, the error says what to do.
Result<Limiter> open_limiter(std::optional<Limit> own, LimiterOptions options) noexcept;
inline Result<Limiter> open_limiter(LimiterOptions options = {}) noexcept {
  return open_limiter(std::nullopt, std::move(options));
}

// Both parts may come from a config file: an error names the part that is wrong.
Result<Limiter> make_limiter(std::string_view algorithm, std::string_view quota, LimiterOptions options = {}) noexcept;

}  // namespace weir
