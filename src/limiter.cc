// The embeddable heart: checks what the caller hands in, reads the clock once a call, and lets the store decide.
// See weir/limiter.h. Any thread may call anything here.

#include "weir/limiter.h"

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "store/memory_store.h"

namespace weir {
namespace {

// A limit that was put together by hand, or left at its defaults, could divide by zero or overflow.
std::optional<Error> refuse_limit(const Limit& limit) {
  const auto within = [](std::int64_t value, std::int64_t low, std::int64_t high) {
    return low <= value && value <= high;
  };
  const bool by_calendar = limit.calendar && limit.algorithm == Algorithm::fixed_window && limit.period_us == 0;
  const bool sound = (by_calendar || (!limit.calendar && within(limit.period_us, 1, kPeriodMax.count()))) &&
                     within(limit.permits, 0, kPermitsMax) && within(limit.capacity, 0, kPermitsMax) &&
                     limit.events_max > 0 && limit.rate > 0 && limit.weight > 0;
  if (sound) return {};
  return Error{ErrorCode::invalid_argument, "this is no limit that compile() made: make it from a quota"};
}

std::optional<Error> refuse_charge(const Charge& charge) {
  if (charge.limit == nullptr) return Error{ErrorCode::invalid_argument, "a charge names no limit"};
  if (auto wrong = refuse_limit(*charge.limit)) return wrong;
  if (charge.limit->algorithm == Algorithm::concurrency) {
    return Error{ErrorCode::invalid_argument, "permits in flight are acquired and released, not checked"};
  }
  return refuse_key(charge.key);
}

std::optional<Error> refuse_id(std::string_view id) {
  if (!id.empty() && id.size() <= kHoldIdBytesMax) return {};
  return Error{ErrorCode::invalid_argument, "the id of a held permit has 1 to " + std::to_string(kHoldIdBytesMax) +
                                                " bytes; this one has " + std::to_string(id.size())};
}

// Nothing is thrown to the caller: without memory, a call answers with an error.
template <class F>
auto guarded(F call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::exhausted, "out of memory");
  } catch (const std::exception&) {
    return fail(ErrorCode::unavailable, "failed");  // short enough to need no memory
  }
}

}  // namespace

struct Limiter::Impl {
  std::shared_ptr<const Clock> clock;
  std::optional<Limit> own;
  MemoryStore store;

  Impl(LimiterOptions options, std::optional<Limit> limit)
      : clock(options.clock ? std::move(options.clock) : make_system_clock()),
        own(std::move(limit)),
        store(options.keys_max, clock) {}

  std::int64_t now() const { return clock->now().count(); }

  Result<Decision> charge(const Charge& charge, std::int64_t at) {
    return guarded([&]() -> Result<Decision> {
      if (auto wrong = refuse_charge(charge)) return fail(std::move(*wrong));
      return store.charge({&charge, 1}, at).map([](const Verdict& verdict) { return verdict.decisions.front(); });
    });
  }

  template <class F>
  Result<Decision> with_own(F call) {
    if (own) return call(*own);
    return fail(ErrorCode::invalid_argument, "this limiter has no limit of its own: give one with the call");
  }
};

Limiter::Limiter(LimiterOptions options) : impl_(std::make_unique<Impl>(std::move(options), std::nullopt)) {}
Limiter::Limiter(Limit own, LimiterOptions options)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(own))) {}
Limiter::Limiter(Limiter&&) noexcept = default;
Limiter& Limiter::operator=(Limiter&&) noexcept = default;
Limiter::~Limiter() = default;

Result<Decision> Limiter::check(std::string_view key, std::int64_t cost) noexcept {
  return impl_->with_own([&](const Limit& own) { return check(key, own, cost); });
}

Result<Decision> Limiter::check(std::string_view key, const Limit& limit, std::int64_t cost) noexcept {
  return impl_->charge({.key = key, .limit = &limit, .cost = cost}, impl_->now());
}

Result<Verdict> Limiter::check_all(std::span<const Charge> charges) noexcept {
  return guarded([&]() -> Result<Verdict> {
    if (charges.empty() || charges.size() > kChargesMax) {
      return fail(ErrorCode::out_of_range, "a request is charged to 1 to " + std::to_string(kChargesMax) +
                                               " limits; this one names " + std::to_string(charges.size()));
    }
    for (const Charge& charge : charges) {
      if (auto wrong = refuse_charge(charge)) return fail(std::move(*wrong));
    }
    return impl_->store.charge(charges, impl_->now());
  });
}

std::vector<Result<Decision>> Limiter::check_many(std::span<const Charge> charges) noexcept {
  const std::int64_t now = impl_->now();
  std::vector<Result<Decision>> answers;
  answers.reserve(charges.size());
  for (const Charge& charge : charges) answers.push_back(impl_->charge(charge, now));
  return answers;
}

Result<Decision> Limiter::peek(std::string_view key) noexcept {
  return impl_->with_own([&](const Limit& own) { return peek(key, own); });
}

Result<Decision> Limiter::peek(std::string_view key, const Limit& limit) noexcept {
  return guarded([&]() -> Result<Decision> {
    if (limit.algorithm != Algorithm::concurrency) return check(key, limit, 0);
    if (auto wrong = refuse_limit(limit)) return fail(std::move(*wrong));
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    const Charge peek{.key = key, .limit = &limit, .cost = 0};
    return impl_->store.acquire(peek, {}, impl_->now());
  });
}

Result<Decision> Limiter::give_back(std::string_view key, std::int64_t permits) noexcept {
  return impl_->with_own([&](const Limit& own) { return give_back(key, own, permits); });
}

Result<Decision> Limiter::give_back(std::string_view key, const Limit& limit, std::int64_t permits) noexcept {
  if (permits < 0) return fail(ErrorCode::out_of_range, "only a positive number of permits can be given back");
  return check(key, limit, -permits);
}

Result<bool> Limiter::reset(std::string_view key) noexcept {
  return guarded([&]() -> Result<bool> {
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    return impl_->store.reset(key, impl_->now());
  });
}

Result<Decision> Limiter::acquire(std::string_view key, std::string_view id, std::int64_t cost) noexcept {
  return impl_->with_own([&](const Limit& own) { return acquire(key, id, own, cost); });
}

Result<Decision> Limiter::acquire(std::string_view key, std::string_view id, const Limit& limit,
                                  std::int64_t cost) noexcept {
  return guarded([&]() -> Result<Decision> {
    if (limit.algorithm != Algorithm::concurrency) {
      return fail(ErrorCode::invalid_argument,
                  "only a limit such as `20 concurrent` can be acquired; check the others");
    }
    if (auto wrong = refuse_limit(limit)) return fail(std::move(*wrong));
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    if (auto wrong = refuse_id(id)) return fail(std::move(*wrong));
    if (cost < 1) return fail(ErrorCode::out_of_range, "at least 1 permit is acquired; peek() looks without acquiring");
    const Charge charge{.key = key, .limit = &limit, .cost = cost};
    return impl_->store.acquire(charge, id, impl_->now());
  });
}

Result<bool> Limiter::release(std::string_view key, std::string_view id) noexcept {
  return guarded([&]() -> Result<bool> {
    if (auto wrong = refuse_key(key)) return fail(std::move(*wrong));
    if (auto wrong = refuse_id(id)) return fail(std::move(*wrong));
    return impl_->store.release(key, id, impl_->now());
  });
}

std::size_t Limiter::size() const noexcept { return impl_->store.size(); }
Micros Limiter::now() const noexcept { return Micros{impl_->now()}; }

Result<Limiter> make_limiter(std::string_view algorithm, std::string_view quota, LimiterOptions options) noexcept {
  return guarded([&]() -> Result<Limiter> {
    const auto named = parse_algorithm(algorithm);
    if (!named) return fail(named.error());
    auto limit = compile(quota, *named);
    if (!limit) return fail(limit.error());
    return Limiter(*std::move(limit), std::move(options));
  });
}

}  // namespace weir
