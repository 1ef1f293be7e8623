// Implements Limiter: checks the arguments, reads the clock once per call, and lets the store decide. See
// weir/limiter.h. Any thread may call any function here.

#include "weir/limiter.h"

#include <unistd.h>

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "algorithm/limit.h"
#include "base/guarded.h"
#include "base/key_space.h"
#include "base/once_name.h"
#include "base/random_id.h"
#include "limiter/find_calendar.h"
#include "limiter/sweeper.h"
#include "limiter/wait_queue.h"
#include "store/memory_store.h"
#include "table/format.h"

namespace weir {

namespace {

std::optional<Error> refuse_limit(const Limit& limit) {
  if (algorithm::is_sound(limit)) return {};
  return Error{ErrorCode::invalid_argument,
               "compile() did not create this limit: compile it from a text such as 100/minute"};
}

std::optional<Error> refuse_charge(const Charge& charge) {
  if (charge.limit == nullptr) return Error{ErrorCode::invalid_argument, "a charge names no limit"};
  if (auto wrong = refuse_limit(*charge.limit)) return wrong;
  if (charge.limit->algorithm == Algorithm::concurrency) {
    return Error{ErrorCode::invalid_argument, "a concurrency limit is not checked; acquire and release its permits"};
  }
  return refuse_key(charge.key);
}

std::optional<Error> refuse_id(std::string_view id) {
  if (!id.empty() && id.size() <= kHoldIdBytesMax) return {};
  return Error{ErrorCode::invalid_argument, "the id of a permit in flight has 1 to " + std::to_string(kHoldIdBytesMax) +
                                                " bytes; this one has " + std::to_string(id.size())};
}

std::optional<Error> refuse_charges(std::span<const Charge> charges, std::size_t charges_max) {
  if (charges.empty() || charges.size() > charges_max) {
    return Error{ErrorCode::out_of_range, "a request is charged to 1 to " + std::to_string(charges_max) +
                                              " limits; this one names " + std::to_string(charges.size())};
  }
  for (const Charge& charge : charges) {
    if (auto wrong = refuse_charge(charge)) return wrong;
  }
  return {};
}

std::optional<Error> refuse_request_id(std::string_view id, Micros lasts) {
  if (id.empty() || id.size() > kRequestIdBytesMax) {
    return Error{ErrorCode::invalid_argument, "the id of a request has 1 to " + std::to_string(kRequestIdBytesMax) +
                                                  " bytes; this one has " + std::to_string(id.size())};
  }
  if (lasts >= kPeriodMin && lasts <= kPeriodMax) return {};
  return Error{ErrorCode::out_of_range,
               "an id lasts for 1 ms to 10 years, not for " + std::to_string(lasts.count()) + " us"};
}

std::optional<Error> refuse_wait(const Charge& charge) {
  if (charge.cost < 1) return Error{ErrorCode::out_of_range, "a wait needs a cost of at least 1 permit"};
  return refuse_charge(charge);
}

// For calls that refund nothing.
std::optional<Error> refuse_costs(std::span<const Charge> charges, std::size_t charges_max) {
  if (auto wrong = refuse_charges(charges, charges_max)) return wrong;
  for (const Charge& charge : charges) {
    if (charge.cost < 0) {
      return Error{ErrorCode::out_of_range,
                   "the cost must be 0 or more, not " + std::to_string(charge.cost) + "; refund() refunds permits"};
    }
  }
  return {};
}

}  // namespace

// Hidden: the shared library exports none of it.
struct [[gnu::visibility("hidden")]] Limiter::Impl {
  std::optional<Limit> own;
  std::unique_ptr<store::MemoryStore> memory;
  std::shared_ptr<store::Store> shared;       // null: none
  store::Store& store;                        // decides: `shared`, with `memory` as its fallback, or `memory` alone
  const Clock& clock;                         // the one that `memory` uses
  std::shared_ptr<limiter::WaitQueue> waits;  // shared with calls that wait while the limiter is destroyed
  std::unique_ptr<limiter::Sweeper> sweeper;
  const pid_t process = getpid();

  Impl(std::unique_ptr<store::MemoryStore> opened, const LimiterOptions& options, std::optional<Limit> limit)
      : own(std::move(limit)),
        memory(std::move(opened)),
        shared(options.shared),
        store(shared ? *shared : *memory),
        clock(memory->clock()),
        waits(std::make_shared<limiter::WaitQueue>(options.waiters_max, clock,
                                                   [this](const Charge& charge, std::int64_t now) {
                                                     return base::guarded([&] { return store.check(charge, now); });
                                                   })) {
    store.use(*memory);
    if (options.sweeping == Sweeping::in_background) {
      sweeper = std::make_unique<limiter::Sweeper>(clock, [this] {
        sweep();
        return memory->sweep_rest();
      });
    }
  }
  ~Impl() {
    if (getpid() == process) {
      sweeper.reset();
      waits->close();
    } else {  // after a fork: the child has no such threads, and destroying what they sleep on would block forever
      static_cast<void>(sweeper.release());
      static_cast<void>(new std::shared_ptr<limiter::WaitQueue>(std::move(waits)));
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static Result<std::unique_ptr<Impl>> open(LimiterOptions options, std::optional<Limit> limit) {
    auto store = store::MemoryStore::open({.keys = options.keys,
                                           .log_bytes = options.log_bytes,
                                           .memory = options.memory,
                                           .file = options.file,
                                           .find_calendar = limiter::find_calendar},
                                          options.clock);
    if (!store) return fail(std::move(store.error()));
    return std::make_unique<Impl>(*std::move(store), options, std::move(limit));
  }

  // For the constructors, which cannot return an error.
  static std::unique_ptr<Impl> open_in_memory(LimiterOptions options, std::optional<Limit> limit) {
    WEIR_ASSERT(options.file.empty());  // open_limiter() opens files
    auto impl = open(std::move(options), std::move(limit));
    WEIR_ASSERT(impl.has_value());
    return *std::move(impl);
  }

  std::int64_t now() const { return clock.now().count(); }
  bool sweep() {
    try {
      return memory->sweep(now());
    } catch (const std::exception&) {  // out of memory: try again next time
      return true;
    }
  }

  // A run of sound charges. If memory runs out, every result is an error, though some may have been charged.
  void check_many(std::span<const Charge> charges, std::int64_t at, std::span<Result<Decision>> answers) {
    try {
      store.check_many(charges, at, answers);
    } catch (const std::exception&) {
      for (Result<Decision>& answer : answers) answer = fail(ErrorCode::exhausted, "out of memory");
    }
  }

  Result<Decision> charge(const Charge& asked) {
    return base::guarded([&]() -> Result<Decision> {
      if (auto wrong = refuse_charge(asked)) return fail(std::move(*wrong));
      const base::StoredCharges stored({&asked, 1});
      const Charge& charge = stored.all()[0];
      auto decision = store.check(charge, now());
      if (charge.cost < 0) waits->hurry(charge.key);
      return decision;
    });
  }

  Result<Verdict> charge_once(std::string_view name, std::span<const Charge> charges, Micros lasts) {
    auto verdict = store.charge(charges, now(), {.name = name, .lasts = lasts});
    hurry(charges);
    return verdict;
  }

  // Waiters for a refunded key try again.
  void hurry(std::span<const Charge> charges) {
    for (const Charge& charge : charges) {
      if (charge.cost < 0) waits->hurry(charge.key);
    }
  }

  Result<bool> reset(std::string_view stored) {
    auto found = store.reset(stored, now());
    waits->hurry(stored);
    return found;
  }

  template <class F>
  Result<Decision> with_own(F call) {
    return base::guarded([&]() -> Result<Decision> {
      if (own) return call(*own);
      return fail(ErrorCode::invalid_argument, "this limiter has no default limit: pass one with the call");
    });
  }
};

Limiter::Limiter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Limiter::Limiter(LimiterOptions options) : Limiter(Impl::open_in_memory(std::move(options), std::nullopt)) {}
Limiter::Limiter(Limit own, LimiterOptions options)
    : Limiter(Impl::open_in_memory(std::move(options), std::move(own))) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Result<Decision> Limiter::check(std::string_view key, std::int64_t cost) noexcept {
  return impl_->with_own([&](const Limit& own) { return check(key, own, cost); });
}

Result<Decision> Limiter::check(std::string_view key, const Limit& limit, std::int64_t cost) noexcept {
  return impl_->charge({.key = key, .limit = &limit, .cost = cost});
}

Result<Verdict> Limiter::check_all(std::span<const Charge> asked) noexcept {
  return base::guarded([&]() -> Result<Verdict> {
    if (auto wrong = refuse_charges(asked, kChargesMax)) return fail(std::move(*wrong));
    const base::StoredCharges stored(asked);
    auto verdict = impl_->store.charge(stored.all(), impl_->now());
    impl_->hurry(stored.all());
    return verdict;
  });
}

Result<Verdict> Limiter::check_once(std::string_view id, std::span<const Charge> asked, Micros lasts) noexcept {
  return base::guarded([&]() -> Result<Verdict> {
    if (auto wrong = refuse_request_id(id, lasts)) return fail(std::move(*wrong));
    if (auto wrong = refuse_charges(asked, kChargesMax)) return fail(std::move(*wrong));
    const base::StoredCharges stored(asked);
    base::OnceName name;
    for (const Charge& charge : stored.all()) {
      name.add(std::to_string(static_cast<int>(charge.limit->algorithm)).append(charge.key), charge.cost);
    }
    return impl_->charge_once(name.of(id), stored.all(), lasts);
  });
}

Result<Verdict> Limiter::charge_once(std::string_view name, std::span<const Charge> charges) noexcept {
  return base::guarded([&] { return impl_->charge_once(name, charges, kRequestIdLasts); });
}

Result<bool> Limiter::charge_into(std::span<const Charge> charges, std::span<Decision> decisions,
                                  Micros& now) noexcept {
  return base::guarded([&]() -> Result<bool> {
    now = Micros{impl_->now()};
    if (charges.size() == 1) {
      auto decision = impl_->store.check(charges[0], now.count());
      if (!decision) return fail(std::move(decision.error()));
      decisions[0] = *decision;
      impl_->hurry(charges);
      return decision->allowed;
    }
    auto allowed = impl_->store.charge_into(charges, now.count(), decisions);
    if (allowed) impl_->hurry(charges);
    return allowed;
  });
}

Result<Verdict> Limiter::overdraw(std::span<const Charge> asked) noexcept {
  return base::guarded([&]() -> Result<Verdict> {
    if (auto wrong = refuse_costs(asked, kChargesMax)) return fail(std::move(*wrong));
    const base::StoredCharges stored(asked);
    return impl_->store.overdraw(stored.all(), impl_->now());
  });
}

std::vector<Result<Decision>> Limiter::check_many(std::span<const Charge> charges) noexcept {
  std::vector<Result<Decision>> answers;
  check_many(charges, answers);
  return answers;
}

Micros Limiter::check_many(std::span<const Charge> asked, std::vector<Result<Decision>>& answers) noexcept {
  const base::StoredCharges stored(asked);
  const std::span<const Charge> charges = stored.all();
  const std::int64_t now = impl_->now();
  answers.resize(charges.size(), Decision{});
  // Charges with errors split the others into runs that the store decides together.
  std::size_t from = 0;
  for (std::size_t i = 0; i <= charges.size(); ++i) {
    std::optional<Error> wrong;
    if (i < charges.size() && !(wrong = refuse_charge(asked[i]))) continue;
    if (i > from) impl_->check_many(charges.subspan(from, i - from), now, std::span(answers).subspan(from, i - from));
    if (wrong) answers[i] = fail(std::move(*wrong));
    from = i + 1;
  }
  impl_->hurry(charges);
  return Micros{now};
}

Result<Decision> Limiter::peek(std::string_view key) noexcept {
  return impl_->with_own([&](const Limit& own) { return peek(key, own); });
}

Result<Decision> Limiter::peek(std::string_view key, const Limit& limit) noexcept {
  return base::guarded([&]() -> Result<Decision> {
    if (limit.algorithm != Algorithm::concurrency) return check(key, limit, 0);
    if (auto wrong = refuse_limit(limit)) return fail(std::move(*wrong));
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    const base::StoredKey stored(key);
    return impl_->store.acquire({.key = stored, .limit = &limit, .cost = 0}, {}, impl_->now());
  });
}

Result<Decision> Limiter::preview(std::string_view key, const Limit& limit, std::int64_t cost) noexcept {
  return preview(Charge{.key = key, .limit = &limit, .cost = cost});
}

Result<Decision> Limiter::preview(const Charge& asked) noexcept {
  return base::guarded([&]() -> Result<Decision> {
    if (auto wrong = refuse_charge(asked)) return fail(std::move(*wrong));
    const base::StoredCharges stored({&asked, 1});
    return impl_->store.preview(stored.all()[0], impl_->now());
  });
}

Result<Decision> Limiter::refund(std::string_view key, std::int64_t permits) noexcept {
  return impl_->with_own([&](const Limit& own) { return refund(key, own, permits); });
}

Result<Decision> Limiter::refund(std::string_view key, const Limit& limit, std::int64_t permits) noexcept {
  return base::guarded([&]() -> Result<Decision> {
    if (permits < 0) return fail(ErrorCode::out_of_range, "a negative number of permits cannot be refunded");
    return check(key, limit, -permits);
  });
}

Result<bool> Limiter::reset(std::string_view key) noexcept {
  return base::guarded([&]() -> Result<bool> {
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    return impl_->reset(base::StoredKey(key));
  });
}

Result<bool> Limiter::reset_rule_key(std::string_view key) noexcept {
  return base::guarded([&] { return impl_->reset(key); });
}

Result<Decision> Limiter::acquire(std::string_view key, std::string_view id, std::int64_t cost) noexcept {
  return impl_->with_own([&](const Limit& own) { return acquire(key, id, own, cost); });
}

Result<Decision> Limiter::acquire(std::string_view key, std::string_view id, const Limit& limit,
                                  std::int64_t cost) noexcept {
  return base::guarded([&]() -> Result<Decision> {
    if (limit.algorithm != Algorithm::concurrency) {
      return fail(ErrorCode::invalid_argument,
                  "only a concurrency limit such as `20 concurrent` can be acquired; check the others");
    }
    if (auto wrong = refuse_limit(limit)) return fail(std::move(*wrong));
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    if (auto wrong = refuse_id(id)) return fail(std::move(*wrong));
    if (cost < 1) return fail(ErrorCode::out_of_range, "acquire at least 1 permit; peek() looks without acquiring");
    const base::StoredKey stored(key);
    return impl_->store.acquire({.key = stored, .limit = &limit, .cost = cost}, id, impl_->now());
  });
}

Result<bool> Limiter::release(std::string_view key, std::string_view id) noexcept {
  return base::guarded([&]() -> Result<bool> {
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    if (auto wrong = refuse_id(id)) return fail(std::move(*wrong));
    const base::StoredKey stored(key);
    return impl_->store.release(stored, id, impl_->now());
  });
}

Result<Decision> Limiter::wait(std::string_view key, Micros deadline, const WaitOptions& options) noexcept {
  return impl_->with_own([&](const Limit& own) { return wait(key, own, deadline, options); });
}

Result<Decision> Limiter::wait(std::string_view key, const Limit& limit, Micros deadline,
                               const WaitOptions& options) noexcept {
  return base::guarded([&]() -> Result<Decision> {
    const Charge charge{.key = key, .limit = &limit, .cost = options.cost};
    if (auto wrong = refuse_wait(charge)) return fail(std::move(*wrong));
    const base::StoredCharges stored({&charge, 1});
    return limiter::wait_here(impl_->waits, stored.all()[0], deadline, options.stop);
  });
}

WaitId Limiter::wait_async(std::string_view key, Micros deadline, WaitCallback callback, std::int64_t cost) noexcept {
  if (impl_->own) return wait_async(key, *impl_->own, deadline, std::move(callback), cost);
  callback(impl_->with_own([](const Limit&) { return Decision{}; }));
  return 0;
}

WaitId Limiter::wait_async(std::string_view key, const Limit& limit, Micros deadline, WaitCallback callback,
                           std::int64_t cost) noexcept {
  const Charge charge{.key = key, .limit = &limit, .cost = cost};
  WaitId id = 0;
  const Result<Decision> sound = base::guarded([&]() -> Result<Decision> {
    if (auto wrong = refuse_wait(charge)) return fail(std::move(*wrong));
    const base::StoredCharges stored({&charge, 1});
    id = impl_->waits->wait(stored.all()[0], deadline, std::move(callback));
    return Decision{};
  });
  if (!sound) callback(sound);
  return id;
}

bool Limiter::cancel_wait(WaitId id) noexcept { return impl_->waits->cancel(id); }
std::size_t Limiter::waiting() const noexcept { return impl_->waits->size(); }

Result<Reservation> Limiter::reserve(std::span<const Charge> asked, const ReserveOptions& options) noexcept {
  return base::guarded([&]() -> Result<Reservation> {
    Reservation reservation{.id = options.id.empty() ? base::random_id() : std::string(options.id)};
    if (auto wrong = refuse_request_id(reservation.id, options.lasts)) return fail(std::move(*wrong));
    if (auto wrong = refuse_costs(asked, kReservedMax)) return fail(std::move(*wrong));
    const base::StoredCharges stored(asked);
    auto verdict = impl_->store.reserve(stored.all(), reservation.id, options.lasts, impl_->now());
    if (!verdict) return fail(std::move(verdict.error()));
    reservation.verdict = *std::move(verdict);
    return reservation;
  });
}

Result<Verdict> Limiter::commit(std::string_view id, std::span<const Charge> asked) noexcept {
  return base::guarded([&]() -> Result<Verdict> {
    if (auto wrong = refuse_request_id(id, kRequestIdLasts)) return fail(std::move(*wrong));
    if (auto wrong = refuse_costs(asked, kReservedMax)) return fail(std::move(*wrong));
    const base::StoredCharges stored(asked);
    auto verdict = impl_->store.commit(stored.all(), id, impl_->now());
    for (const Charge& charge : stored.all()) impl_->waits->hurry(charge.key);  // the unused part was refunded
    return verdict;
  });
}

Result<Verdict> Limiter::cancel(std::string_view id, std::span<const Charge> reserved) noexcept {
  return base::guarded([&]() -> Result<Verdict> {
    std::vector<Charge> nothing(reserved.begin(), reserved.end());
    for (Charge& charge : nothing) charge.cost = 0;
    return commit(id, nothing);
  });
}

bool Limiter::sweep() noexcept { return impl_->sweep(); }
std::size_t Limiter::size() const noexcept { return impl_->memory->size(); }

LimiterStats Limiter::stats() const noexcept {
  table::Table& table = impl_->memory->table();
  const table::Counters counters = table.counters();
  return {.keys = table.size(),
          .capacity = table::keys_of(table.pages()),
          .evicted = counters.evicted,
          .early = counters.early,
          .no_room = counters.no_room,
          .bytes = table.region().bytes(),
          .compacted = counters.compacted};
}
Micros Limiter::now() const noexcept { return Micros{impl_->now()}; }

std::uint32_t Limiter::nodes() const noexcept { return impl_->store.nodes(); }

Result<Limiter> open_limiter(std::optional<Limit> own, LimiterOptions options) noexcept {
  return base::guarded([&]() -> Result<Limiter> {
    auto impl = Limiter::Impl::open(std::move(options), std::move(own));
    if (!impl) return fail(std::move(impl.error()));
    return Limiter(*std::move(impl));
  });
}

Result<Limiter> make_limiter(std::string_view algorithm, std::string_view quota, LimiterOptions options) noexcept {
  return base::guarded([&]() -> Result<Limiter> {
    const auto named = parse_algorithm(algorithm);
    if (!named) return fail(named.error());
    auto limit = compile(quota, *named);
    if (!limit) return fail(limit.error());
    return open_limiter(*std::move(limit), std::move(options));
  });
}

}  // namespace weir
