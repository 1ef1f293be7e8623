// The rate limiter of one process: thread-safe, no exceptions, no globals.
//
//   auto limiter = weir::make_limiter("token_bucket", "10/s burst 50");
//   if (!limiter) return report(limiter.error().message);
//   auto decision = limiter->check("user:42");
//   if (decision && decision->allowed) serve();
//
// Every call that charges is one event: a request over several limits takes all of its permits or none. With a
// state file (open_limiter) the state outlives the process, and several processes share it.
// All members may be called from any thread at once; none of a limiter that was moved from. Tested by limiter_test.cc,
// wait_test.cc and store_contract_test.cc; docs/embed.md is the guide.
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

namespace weir {

class SharedStore;  // of a fleet; weir/fleet.h makes one

inline constexpr std::size_t kHoldIdBytesMax = 64;
inline constexpr std::size_t kRequestIdBytesMax = 64;  // of idempotency ids and reservations
inline constexpr Micros kRequestIdLasts{600'000'000};

// Who forgets keys that have recovered: a thread of the limiter, a slice of them at a time, or the caller, by sweep().
enum class Sweeping : std::uint8_t { in_background, by_hand };

struct LimiterOptions {
  std::shared_ptr<const Clock> clock{};  // null: the system's; on a file, the one that all its processes share
  std::size_t keys = 0;                  // live keys there is room for; 0: 1,000,000, or what the file has
  std::size_t log_bytes = 0;             // for the events of sliding logs; 0: as suits the keys
  std::size_t memory = 0;                // bytes of all that: what of the two above is 0 follows from it; 0: no matter
  std::string file{};                    // where the state lives; empty: in this process only
  Sweeping sweeping = Sweeping::in_background;
  std::size_t waiters_max = 10'000;       // who may wait at once; 1,000,000 at most
  std::shared_ptr<SharedStore> shared{};  // where limits are shared with others; null: nowhere
};

// Names somebody who waits; 0 names nobody.
using WaitId = std::uint64_t;
// Never empty. Must not throw, and is not the place to block: others are served by the same thread.
using WaitCallback = std::function<void(Result<Decision>)>;

struct WaitOptions {
  std::int64_t cost = 1;
  std::stop_token stop{};  // ends the wait, with an error, when a stop is requested
};

struct ReserveOptions {
  std::string_view id{};           // the caller's own; empty: a random one is made
  Micros lasts = kRequestIdLasts;  // so long, or some two minutes longer, it can be settled; then it stays spent
};

struct Reservation {
  Verdict verdict{};  // nothing is reserved if it denies
  std::string id{};   // for commit() or cancel()
};

struct LimiterStats {
  std::uint64_t keys = 0;       // live ones, as size()
  std::uint64_t capacity = 0;   // keys that there are places for; beyond some 90 % the next ones push others out
  std::uint64_t evicted = 0;    // keys that gave their place to others before they had recovered
  std::uint64_t early = 0;      // requests of new keys that were denied for what evicted ones had used
  std::uint64_t no_room = 0;    // requests that were denied for want of room for a ticket, a log or permits in flight
  std::uint64_t bytes = 0;      // of the whole table
  std::uint64_t compacted = 0;  // logs of sliding_log that became two counters, since the arena for logs was full
};

class Limiter {
 public:
  // A limiter without a limit of its own: each call brings one. In memory only: options that name a file, or memory
  // that is not there, end the program. open_limiter() answers instead.
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

  // check_once()
  //
  // check_all() for a request that may be sent twice: a further one with the id of one that was allowed is allowed,
  // told what the keys hold, and charged nothing. The id is bound to the keys, algorithms and costs that it came with:
  // with others it is another request. Ids are forgotten after `lasts`.
  Result<Verdict> check_once(std::string_view id, std::span<const Charge> charges,
                             Micros lasts = kRequestIdLasts) noexcept;

  // overdraw()
  //
  // Charges what it can, each limit at most to full, and is never denied: for what has happened already, as a login
  // that another limit denied.
  Result<Verdict> overdraw(std::span<const Charge> charges) noexcept;

  // check_many()
  //
  // Several requests, each on its own, with one reading of the clock, unless a key has seen a later one meanwhile.
  // Answers stand in order. Without memory for the answers the program ends.
  std::vector<Result<Decision>> check_many(std::span<const Charge> charges) noexcept;
  // The same into room that is used again. Returns the time that was read.
  Micros check_many(std::span<const Charge> charges, std::vector<Result<Decision>>& answers) noexcept;

  // peek()
  //
  // What a request of cost 0 is told. Changes nothing.
  Result<Decision> peek(std::string_view key) noexcept;
  Result<Decision> peek(std::string_view key, const Limit& limit) noexcept;

  // preview()
  //
  // What a check of this cost would be told, but `remaining` is what is left before it. Changes nothing, under whatever
  // version of the limit.
  Result<Decision> preview(std::string_view key, const Limit& limit, std::int64_t cost = 1) noexcept;
  // The same with the charge's fallback, where a fleet cannot ask Redis.
  Result<Decision> preview(const Charge& charge) noexcept;

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

  // wait()
  //
  // Blocks until the permits come, and takes them; or answers at once, denied, when they cannot come by the deadline,
  // a time of now(). Those who wait for one key are served in order of arrival. `retry_after` of a denial says when
  // the permits could have come, if nobody else spends. A leaky bucket's delay is waited out. Too many waiters, a
  // requested stop or the end of the limiter are errors; in all these cases nothing stays charged.
  Result<Decision> wait(std::string_view key, Micros deadline, const WaitOptions& options = {}) noexcept;
  Result<Decision> wait(std::string_view key, const Limit& limit, Micros deadline,
                        const WaitOptions& options = {}) noexcept;

  // wait_async()
  //
  // The same by callback, which is made exactly once, whatever happens: within this call if the answer is known
  // already, and then 0 is returned; else later, by the limiter's own thread. It must not destroy the limiter.
  WaitId wait_async(std::string_view key, Micros deadline, WaitCallback callback, std::int64_t cost = 1) noexcept;
  WaitId wait_async(std::string_view key, const Limit& limit, Micros deadline, WaitCallback callback,
                    std::int64_t cost = 1) noexcept;

  // cancel_wait()
  //
  // True if it was still waiting: this call has made the callback, with an error. False if the callback was made, or
  // is being made, by the limiter's thread.
  bool cancel_wait(WaitId id) noexcept;
  // How many wait now, in either form.
  std::size_t waiting() const noexcept;

  // reserve(), commit() and cancel()
  //
  // For work whose cost is known only afterwards: reserve() takes what it may cost, commit() settles for what it did.
  // Both name the same keys and limits (16 at most), the latter with the actual costs. What was reserved beyond them is
  // refunded as of when it was reserved: from a window that has ended nothing comes back, and from a bucket only what
  // cannot have drained since. What is missing is charged now, at most to full. cancel() settles for 0, whatever costs
  // it is given.
  // A reservation can be settled once, from any process on the same file.
  Result<Reservation> reserve(std::span<const Charge> charges, const ReserveOptions& options = {}) noexcept;
  Result<Verdict> commit(std::string_view id, std::span<const Charge> actual) noexcept;
  Result<Verdict> cancel(std::string_view id, std::span<const Charge> reserved) noexcept;

  // sweep()
  //
  // A slice of the work that Sweeping::by_hand leaves to the caller: up to 24,000 keys, well below a millisecond. True
  // if that ended a round through all keys: then rest, for a second or so.
  bool sweep() noexcept;

  // Live keys, those among them that have lapsed but are not swept yet included.
  std::size_t size() const noexcept;
  // How full the table is, and what it had to give away; of a file, by all its processes and since it was made.
  LimiterStats stats() const noexcept;
  // The time that the next decision is made at.
  Micros now() const noexcept;
  // How many processes share its limits by LimiterOptions::shared, as far as is known; 0: it shares with nobody.
  std::uint32_t nodes() const noexcept;

 private:
  friend class Gate;  // its limits and keys are sound, and it has room for the answers
  struct Judgement {
    bool allowed = false;
    std::size_t binding = 0;
    Micros now{0};  // the time that was read
  };
  Result<Judgement> judge(std::span<const Charge> charges, std::span<Decision> decisions) noexcept;
  Result<bool> reset_rule_key(std::string_view key) noexcept;
  // check_once(), with a name that the caller has bound to what it charges (once_name.h).
  Result<Verdict> charge_once(std::string_view name, std::span<const Charge> charges) noexcept;

  struct Impl;
  explicit Limiter(std::unique_ptr<Impl> impl);
  friend Result<Limiter> open_limiter(std::optional<Limit> own, LimiterOptions options) noexcept;
  std::unique_ptr<Impl> impl_;
};

// open_limiter()
//
// In memory or, if the options name a file, on its state; with a limit of its own or without. A file that is not there
// is made. One that cannot be used is refused, with what to do.
Result<Limiter> open_limiter(std::optional<Limit> own, LimiterOptions options) noexcept;
inline Result<Limiter> open_limiter(LimiterOptions options = {}) noexcept {
  return open_limiter(std::nullopt, std::move(options));
}

// From text. Either part may come from a config file: an error says what is wrong with it.
Result<Limiter> make_limiter(std::string_view algorithm, std::string_view quota, LimiterOptions options = {}) noexcept;

}  // namespace weir
