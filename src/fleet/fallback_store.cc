// Decisions from the memory of this process. See fallback_store.h.
#include "fleet/fallback_store.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <utility>

#include "algorithm/binding.h"
#include "algorithm/limit.h"
#include "base/family.h"
#include "base/few.h"
#include "fleet/key_name.h"

namespace weir::fleet {
namespace {

std::atomic<std::uint64_t> forks{0};  // of this process and its ancestors

std::uint64_t count_forks() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1); });
  static_cast<void>(watched);
  return forks.load();
}

// After this time a retry makes sense.
constexpr Micros kClosedRetry{1'000'000};
constexpr Micros kShedRetry{50'000};

DecidedBy decided_by_of(Fallback fallback) {
  return fallback == Fallback::local  ? DecidedBy::local
         : fallback == Fallback::open ? DecidedBy::open
                                      : DecidedBy::closed;
}

Decision closed(const Limit& limit) {
  return {.allowed = false,
          .limit = limit.capacity,
          .retry_after = kClosedRetry,
          .reset_after = kClosedRetry,
          .decided_by = DecidedBy::closed};
}

}  // namespace

FallbackStore::FallbackStore(KeyMemory& memory, UnsyncedCharges& unsynced, UnsyncedPermits& unsynced_permits,
                             NodeRank rank)
    : memory_(memory), unsynced_(unsynced), unsynced_permits_(unsynced_permits), forks_(count_forks()), rank_(rank) {}

bool FallbackStore::is_child() const { return forks.load(std::memory_order_relaxed) != forks_; }

namespace {

// Shares of a limit differ with the number of nodes and with what is known of a key. For the table they are versions
// of one limit, even if the limit came with the request.
std::uint64_t family_of_shares(const Charge& charge) {
  if (charge.family != 0) return charge.family;
  const Limit& limit = *charge.limit;
  const std::int64_t terms[] = {static_cast<std::int64_t>(limit.algorithm), limit.permits, limit.period_us,
                                limit.capacity, limit.rate};
  return base::family_of({reinterpret_cast<const char*>(terms), sizeof terms}, "share");
}

}  // namespace

// The limits that apply here instead of the requested ones.
class FallbackStore::Shares {
 public:
  void add(std::span<const Charge> charges, NodeRank rank) {
    for (const Charge& charge : charges) {
      Charge& own = charges_.add(charge);
      own.limit = &limits_.add(charge.fallback == Fallback::local ? share_of(*charge.limit, rank) : *charge.limit);
      own.family = family_of_shares(charge);
    }
  }
  std::span<const Charge> charges() const { return charges_.all(); }

 private:
  base::Few<Limit, kChargesMax> limits_;
  base::Few<Charge, kChargesMax> charges_;
};

// Starts a key with this node's part of what is used everywhere, as far as this node knows. Adds its own unsynced
// charges, which Redis did not include. For a higher version of the limit, the share is charged until it is full: if it
// were emptied first, a request on another thread could find it empty.
void FallbackStore::begin_key(const KnownKey& key, const Charge& whole, const Limit& part, Moment now) {
  if (is_child()) return;
  const auto is_lasting = [&] { return memory_.is_lasting(whole.key); };
  memory_.begin_share(key.mark, *whole.limit, now.steady, is_lasting, [&](const KnownUsage& said, bool is_higher) {
    std::int64_t used = 0;
    if (said.reset_at > now.steady) {
      const NodeRank rank = this->rank();
      used = std::max(part.capacity - left_of(whole.limit->capacity, said.used, rank), part_of(said.used, rank));
    }
    used += unsynced_.cost_of(key, *whole.limit, now.steady);
    if (!is_higher) static_cast<void>(here_->forget(*whole.limit, whole.key, now.here));
    if (used <= 0) return;
    // The next request may use a higher version of the limit, and must find everything that is used.
    Limit wide = part;
    if (!algorithm::is_bucket(part.algorithm)) wide.permits = std::max(part.permits, used);
    if (used < algorithm::kFillMax_us / wide.weight) wide.capacity = std::max(part.capacity, used);
    const Charge charged{
        .key = whole.key, .limit = &wide, .cost = std::min(used, wide.capacity), .family = family_of_shares(whole)};
    static_cast<void>(here_->overdraw({&charged, 1}, now.here));
  });
}

// share()
//
// This node's share of `limit`. Splitting a limit costs more than charging it, so each thread caches the last eight.
const Limit* FallbackStore::share(const Limit& limit, Fallback fallback) const {
  const NodeRank rank = this->rank();
  if (rank.nodes <= 1 || fallback != Fallback::local) return &limit;
  struct Known {
    Limit whole, part;
    NodeRank rank{.nodes = 0};
  };
  static thread_local std::array<Known, 8> known;
  static thread_local std::size_t next = 0;
  for (const Known& one : known) {
    if (one.rank == rank && one.whole == limit) return &one.part;
  }
  Known& one = known[next++ % known.size()];
  one = {.whole = limit, .part = share_of(limit, rank), .rank = rank};
  return &one.part;
}

// The outcome of the call is about this booking only: after a reset of the key it says nothing about later ones.
void FallbackStore::add_in_doubt(const Charge& charge, const KnownKey& key, Doubt& doubt) {
  doubt.set_epoch(key.name, *charge.limit, unsynced_.doubt(key, *charge.limit, charge.cost));
}

// Puts the whole limit into the decision, and books the charge.
void FallbackStore::book(const Charge& charge, const KnownKey& key, const Limit& part, Decision& decision,
                         Booked booked, Micros now) {
  const auto [cost, charged_us, booking, refunds, is_charge] = booked;
  decision.decided_by = decided_by_of(charge.fallback);
  decision.limit = charge.limit->capacity;
  if (cost == 0 || charge.limit->algorithm == Algorithm::concurrency || is_child()) return;
  if (booking.is_none()) return;
  if (booking.doubt() != nullptr && cost > 0) {
    add_in_doubt(charge, key, *booking.doubt());
  } else {
    // With nothing left, more than this version's capacity may be used.
    const std::int64_t used = part.capacity - decision.remaining;
    const bool is_exact = decision.remaining > 0 || is_charge;
    unsynced_.add(key, *charge.limit, cost, now + decision.reset_after,
                  is_exact ? LocalUsage{used, now, refunds} : LocalUsage::at_least(used, refunds), charged_us);
  }
  memory_.recount_unsynced(key.mark, *charge.limit);
}

Result<Decision> FallbackStore::check(const Charge& charge, const table::Name& place, const KnownKey& key, Moment now,
                                      Booking booking) {
  if (charge.fallback == Fallback::closed && charge.cost > 0) return closed(*charge.limit);
  const Limit* const part = share(*charge.limit, charge.fallback);
  Charge own = charge;
  own.limit = part;
  own.family = family_of_shares(charge);
  if (charge.fallback == Fallback::local) begin_key(key, charge, *part, now);
  RefundOrder::Change change(refund_order_, key.mark, charge.cost < 0);
  auto decision = here_->check(place, own, now.here);
  const RefundCount refunds = change.end();
  if (!decision) return decision;
  const std::int64_t cost = decision->allowed ? charge.cost : 0;
  book(charge, key, *part, *decision, {cost, now.here, booking, refunds, cost > 0}, now.steady);
  return decision;
}

Result<Verdict> FallbackStore::ask(const ScriptRequest& request, std::int64_t time,
                                   std::span<store::MemoryStore::Returned> returned) {
  const std::span<const Charge> charges = request.charges;
  const auto alone = [](Result<Decision> decision) -> Result<Verdict> {
    if (!decision) return fail(std::move(decision.error()));
    return Verdict{.allowed = decision->allowed, .decisions = {*decision}};
  };
  switch (request.what) {
    case What::charge:
      return here_->charge(charges, time);
    case What::once:
      return here_->charge(charges, time, {.name = request.id, .lasts = request.lasts});
    case What::overdraw:
      return here_->overdraw(charges, time);
    case What::reserve:
      return here_->reserve(charges, request.id, request.lasts, time);
    case What::commit:
      return here_->commit(charges, request.id, time, returned);
    case What::look:
      return alone(here_->preview(charges[0], time));
    case What::acquire:
    case What::release:
    case What::undo:
    case What::forget:
    case What::write_back:
      break;
  }
  return Verdict{.allowed = true, .decisions = std::vector<Decision>(charges.size())};
}

// Permits in flight. Redis granted some of them, and cannot be asked which were released.
Result<Verdict> FallbackStore::acquire(const Charge& charge, std::string_view id, Micros now) {
  const auto answer = [&](Decision decision) -> Result<Verdict> {
    decision.decided_by = decided_by_of(charge.fallback);
    decision.limit = charge.limit->capacity;
    return Verdict{.allowed = decision.allowed, .decisions = {decision}};
  };
  if (charge.fallback == Fallback::closed && charge.cost > 0) return answer(closed(*charge.limit));
  const Limit* const part = share(*charge.limit, charge.fallback);
  Limit own = *part;
  if (charge.fallback == Fallback::local && !is_child()) {
    const auto said = memory_.known_usage(memory_.mark_of(KeyName(charge)), *charge.limit, now);
    if (said) own.permits = own.capacity = std::min(own.permits, part_of(said->remaining, rank()));
  }
  if (charge.cost > own.permits && charge.cost <= part->permits) {
    return answer({.allowed = false, .retry_after = kClosedRetry, .reset_after = kClosedRetry});
  }
  Charge here = charge;
  here.limit = &own;
  const auto decision = here_->acquire(here, id, here_->clock().now().count());
  if (!decision) return fail(decision.error());
  if (decision->allowed && charge.cost > 0 && !is_child()) {
    unsynced_permits_.add({.key = std::string(charge.key),
                           .id = std::string(id),
                           .limit = *charge.limit,
                           .cost = charge.cost,
                           .until = now + Micros{charge.limit->period_us}});
  }
  return answer(*decision);
}

Result<Verdict> FallbackStore::answer(const ScriptRequest& request, Moment now, Booking booking) {
  const What what = request.what;
  const std::span<const Charge> charges = request.charges;
  if (what == What::acquire) return acquire(charges[0], request.id, now.steady);
  const bool is_closed = std::ranges::any_of(charges, [&](const Charge& charge) {
    return charge.fallback == Fallback::closed && charge.cost > 0 && takes_permits(what);
  });
  Shares shares;
  shares.add(charges, rank());
  std::array<KeyMark, kChargesMax> marks;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    const KeyName name(charge);
    marks[i] = memory_.mark_of(name);
    if (charge.fallback != Fallback::local || charge.limit->algorithm == Algorithm::concurrency) continue;
    begin_key({name, marks[i]}, charge, *shares.charges()[i].limit, now);
  }
  base::Few<RefundOrder::Change, kChargesMax> changes;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    changes.add(refund_order_, marks[i], what == What::commit || what == What::overdraw || charges[i].cost < 0);
  }
  Result<Verdict> verdict = Verdict{.allowed = true};
  std::array<store::MemoryStore::Returned, kChargesMax> returned{};  // refunded by a commit
  if (is_closed) {
    for (std::size_t i = 0; i < charges.size(); ++i) {
      auto one = charges[i].fallback == Fallback::closed
                     ? Result<Verdict>(Verdict{.decisions = {closed(*charges[i].limit)}})
                     : ask({.what = What::look, .charges = shares.charges().subspan(i, 1)}, now.here);
      if (!one) return fail(std::move(one.error()));
      verdict->decisions.push_back(one->decisions[0]);
    }
    verdict->allowed = false;
    verdict->binding = algorithm::binding_of(verdict->decisions, false);
  } else {
    verdict = ask(request.about(shares.charges()), now.here, std::span(returned).first(charges.size()));
    if (!verdict) return verdict;
  }
  const bool is_charged =
      verdict->allowed && !verdict->repeated && (takes_permits(what) || what == What::overdraw || what == What::commit);
  for (std::size_t i = 0; i < charges.size(); ++i) {
    // The reservation is unsynced already. Of its unused part, only what was refunded here stops being unsynced.
    const std::int64_t reserved = what == What::commit ? verdict->reserved[i] : 0;
    const bool has_rest = what == What::commit && charges[i].cost < reserved;
    const std::int64_t cost = !is_charged ? 0 : has_rest ? -returned[i].permits : charges[i].cost - reserved;
    const KeyName name(charges[i]);
    book(charges[i], {name, marks[i]}, *shares.charges()[i].limit, verdict->decisions[i],
         {cost, has_rest ? returned[i].charged_us : now.here, booking, changes[i].end(),
          takes_permits(what) && cost > 0},
         now.steady);
  }
  return verdict;
}

void FallbackStore::refund(std::span<const Charge> charges, std::int64_t charged_us,
                           std::optional<std::int64_t> booked_us, Micros now) {
  Shares shares;
  shares.add(charges, rank());
  base::Few<RefundOrder::Change, kChargesMax> changes;
  for (const Charge& charge : charges) changes.add(refund_order_, memory_.mark_of(KeyName(charge)), true);
  std::array<store::MemoryStore::Returned, kChargesMax> returned{};
  auto verdict = here_->refund(shares.charges(), charged_us, here_->clock().now().count(),
                               std::span(returned).first(charges.size()));
  if (!verdict || !booked_us) return;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const KeyName name(charges[i]);
    book(charges[i], {name, memory_.mark_of(name)}, *shares.charges()[i].limit, verdict->decisions[i],
         {-returned[i].permits, *booked_us, Booking::unsynced, changes[i].end()}, now);
  }
}

// The retry wait is short: Redis is healthy, and will have time.
std::optional<Decision> FallbackStore::decide_one_from_known(const Charge& charge, const KnownKey& key, Moment moment,
                                                             Booking booking) {
  if (is_child() || charge.fallback != Fallback::local || charge.cost < 0 ||
      charge.limit->algorithm == Algorithm::concurrency) {
    return {};
  }
  const Micros now = moment.steady;
  Decision decision{.limit = charge.limit->capacity, .retry_after = kShedRetry, .reset_after = kShedRetry};
  const KeyMemory::Alone spare = memory_.admit_alone(
      key.mark, *charge.limit, charge.cost, rank(), now, [&] { return unsynced_.cost_of(key, *charge.limit, now); },
      [&](std::int64_t left, Micros reset_at) {
        decision = {.allowed = true, .limit = charge.limit->capacity, .remaining = left};
        decision.reset_after = reset_at - now;
        if (charge.cost == 0) return;
        if (booking.doubt() != nullptr) return add_in_doubt(charge, key, *booking.doubt());
        unsynced_.add(key, *charge.limit, charge.cost, now + recovery_of(*charge.limit), {}, moment.here);
      });
  decision.decided_by = spare == KeyMemory::Alone::busy ? DecidedBy::overloaded : DecidedBy::local;
  return decision;
}

std::optional<Verdict> FallbackStore::decide_from_known(std::span<const Charge> charges, Moment moment,
                                                        Booking booking) {
  Verdict verdict{.allowed = true};
  for (const Charge& charge : charges) {
    const KeyName name(charge);
    const auto decision = decide_one_from_known(charge, {name, memory_.mark_of(name)}, moment, booking);
    if (!decision || !decision->allowed) unbook(charges.first(verdict.decisions.size()), moment, booking);
    if (!decision) return {};
    verdict.allowed = decision->allowed;
    verdict.decisions.push_back(*decision);
    if (!verdict.allowed) break;
  }
  while (verdict.decisions.size() < charges.size()) {
    const Limit& limit = *charges[verdict.decisions.size()].limit;
    verdict.decisions.push_back({.allowed = true, .limit = limit.capacity, .decided_by = DecidedBy::local});
  }
  verdict.binding = algorithm::binding_of(verdict.decisions, verdict.allowed);
  return verdict;
}

void FallbackStore::unbook(std::span<const Charge> charges, Moment booked, Booking booking) {
  for (const Charge& charge : charges) {
    if (charge.cost == 0) continue;
    const KeyName name(charge);
    const KeyMark mark = memory_.mark_of(name);
    if (booking.doubt() != nullptr) {
      const std::uint64_t epoch = booking.doubt()->epoch_of(name, *charge.limit);
      unsynced_.settle({.mark = mark, .limit = *charge.limit, .cost = charge.cost, .epoch = epoch}, true);
    } else {
      unsynced_.add({name, mark}, *charge.limit, -charge.cost, booked.steady + Micros{1}, {}, booked.here);
    }
  }
}

void FallbackStore::book_all(std::span<const Charge> charges, Moment now, Booking booking) {
  if (is_child()) return;
  for (const Charge& charge : charges) {
    if (charge.cost == 0 || charge.limit->algorithm == Algorithm::concurrency) continue;
    const KeyName name(charge);
    const KnownKey key{name, memory_.mark_of(name)};
    if (booking.doubt() != nullptr && charge.cost > 0) {
      add_in_doubt(charge, key, *booking.doubt());
    } else {
      unsynced_.add(key, *charge.limit, charge.cost, now.steady + recovery_of(*charge.limit), {}, now.here);
    }
    memory_.recount_unsynced(key.mark, *charge.limit);
  }
}

Result<bool> FallbackStore::release(std::string_view key, std::string_view id) {
  if (!is_child()) unsynced_permits_.release(key, id);
  return here_->release(key, id, here_->clock().now().count());
}

Result<bool> FallbackStore::forget(std::string_view key) {
  if (!is_child()) unsynced_permits_.forget(key);
  return here_->reset(key, here_->clock().now().count());
}

}  // namespace weir::fleet
