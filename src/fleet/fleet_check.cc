// Selects what decides a check: Redis, the record of the key, or this node's share. Part of FleetStore, see
// fleet_store.h.
//
// A check goes to Redis and carries the unsynced charges of its keys. If Redis does not decide it, the record of the
// key does (KeyMemory::admit_alone()). After an outage the share must also admit it (handover.h). Tested by
// tests/fleet_seam_test.cc and tests/fleet_seam_model_test.cc.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "algorithm/binding.h"
#include "fleet/fleet_store.h"
#include "fleet/key_name.h"
#include "fleet/redis_key.h"

namespace weir::fleet {

namespace {

Booking booking_of(const ScriptRequest& request) {
  return request.doubt ? Booking(*request.doubt) : Booking(Booking::unsynced);
}

void decide(const ScriptRequest& request, bool is_granted) {
  if (request.doubt) request.doubt->decide(is_granted);
}

}  // namespace

void FleetStore::run(std::span<ScriptRequest> requests) {
  if (options_.transport) return options_.transport->run(requests);
  if (background_.membership().is_barred()) return;  // they have failed
  if (FiberWaiter* const waiter = FiberWaiter::here()) return waiter->run(requests);
  if (getpid() == process_) thread_->run(requests);  // after a fork there is no thread: they count as failed
}

// Whether a request would fail immediately, as far as this loop knows. A request of several keys has one subject.
bool FleetStore::would_fail(const Charge& charge) const {
  FiberWaiter* const waiter = options_.transport ? nullptr : FiberWaiter::here();
  return waiter != nullptr && waiter->pipeline().would_fail(waiter->pipeline().slot_of(subject_of(charge.key)));
}

// Counts a request that is not sent because it would fail.
void FleetStore::count_failed(const Charge& charge) const {
  ScriptPipeline& pipeline = FiberWaiter::here()->pipeline();
  pipeline.count_failed(pipeline.slot_of(subject_of(charge.key)));
}

bool FleetStore::fails_at_once(const Charge& charge) const {
  if (!would_fail(charge)) return false;
  count_failed(charge);
  return true;
}

// The cluster slot of a key; Handover::kAll without a cluster.
int FleetStore::slot_of(std::string_view key) const {
  if (options_.target.layout != base::redis::Layout::cluster) return Handover::kAll;
  std::string head;
  append_redis_head(head, kTicketMark, redis_tag(subject_of(key)));
  return redis::slot_of(head);
}

// Whether this node's share takes part in deciding requests for this key.
bool FleetStore::has_share(std::string_view key) const { return handover_.is_on() && handover_.concerns(slot_of(key)); }

// Whether this node's share must also admit the charge.
bool FleetStore::is_shared(const Charge& charge) const {
  return charge.cost >= 0 && charge.fallback == Fallback::local && charge.limit->algorithm != Algorithm::concurrency &&
         has_share(charge.key);
}

bool FleetStore::is_shared(std::span<const Charge> charges) const {
  return handover_.is_on() && std::ranges::any_of(charges, [this](const Charge& one) { return is_shared(one); });
}

// Returns a cached denial, or counts the charge as in flight.
std::optional<Decision> FleetStore::denial_or_start(const Charge& charge, KeyMark mark, KeyMemory::Asked& asked,
                                                    std::size_t place, bool may_cache, bool is_shared) {
  const auto is_any_unsynced = [this] { return !unsynced_.is_synced(); };
  return memory_.ask(mark, *charge.limit, charge.cost, asked, place, is_any_unsynced, may_cache, is_shared);
}

// Counts the charges as in flight. Not in a child process, where the memory's locks may be locked forever.
KeyMemory::Asked FleetStore::count(std::span<const Charge> charges) {
  KeyMemory::Asked asked = memory_.begin(this->now());
  if (fallback_.is_child()) return asked;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    if (charge.limit == nullptr || charge.limit->algorithm == Algorithm::concurrency) continue;
    static_cast<void>(denial_or_start(charge, memory_.mark_of(KeyName(charge)), asked, i, false, is_shared(charge)));
  }
  return asked;
}

void FleetStore::miss(std::span<const Charge> charges, const KeyMemory::Asked& asked) {
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if ((asked.counted >> i & 1) == 0) continue;
    memory_.miss(memory_.mark_of(KeyName(charges[i])), *charges[i].limit, charges[i].cost, asked, i);
  }
}

// The verdict if a cached denial decides the request. For the other limits it reports the last known state, because a
// denied request is charged nothing.
std::optional<Verdict> FleetStore::known_denial(std::span<const Charge> charges, Micros now) {
  if (!may_cache() || fallback_.is_child()) return {};
  Verdict verdict;
  bool is_denied = false;
  for (const Charge& charge : charges) {
    if (charge.limit->algorithm == Algorithm::concurrency || charge.cost < 0) return {};
    const KeyMark mark = memory_.mark_of(KeyName(charge));
    auto decision = memory_.denial(mark, *charge.limit, charge.cost, now);
    is_denied = is_denied || decision;
    if (!decision) decision = memory_.guess(mark, *charge.limit, charge.cost, now);
    if (!decision) return {};
    decision->decided_by = DecidedBy::cached;
    verdict.decisions.push_back(*decision);
  }
  return is_denied ? std::optional(std::move(verdict)) : std::nullopt;
}

// Decides by this node's share. Reading the clocks overlaps with the prefetches.
Result<Decision> FleetStore::check_here(const Charge& charge, Booking booking, FallbackStore::Moment* decided) {
  const table::Name place = fallback_.find(charge);
  const KeyMark mark = KeyMemory::mark_of(place);
  memory_.prefetch(mark);
  const KeyName name(charge);
  counts_.fallback.add();
  const FallbackStore::Moment now = fallback_.moment(this->now());
  if (decided != nullptr) *decided = now;
  return fallback_.check(charge, place, {name, mark}, now, booking);
}

// Redis did not decide, though it may be healthy. The record of the key decides, else this node's share.
Result<Decision> FleetStore::fall_back(const Charge& charge, KeyMark mark, Micros now, Booking booking) {
  if (!is_shared(charge)) {
    const KeyName name(charge);
    if (const auto decision = fallback_.decide_one_from_known(charge, {name, mark}, fallback_.moment(now), booking)) {
      counts_.fallback.add();
      if (decision->decided_by == DecidedBy::overloaded) counts_.shed.add();
      return *decision;
    }
  }
  return check_here(charge, booking);
}

// The same for several charges, or with an id.
Result<Verdict> FleetStore::fall_back(const ScriptRequest& request, Micros steady) {
  const FallbackStore::Moment now = fallback_.moment(steady);
  counts_.fallback.add();
  const Booking booking = booking_of(request);
  bool is_booked = false;
  if (takes_permits(request.what) && !is_shared(request.charges)) {
    auto verdict = fallback_.decide_from_known(request.charges, now, booking);
    if (verdict && verdict->binding_decision().decided_by == DecidedBy::overloaded) {
      counts_.shed.add();
    }
    if (verdict && (request.what == What::charge || !verdict->allowed)) return *std::move(verdict);
    is_booked = verdict.has_value();  // then only its id remains to be stored
  }
  auto verdict = fallback_.answer(request, now, is_booked ? Booking::none : booking);
  if (is_booked && !(verdict && verdict->allowed && !verdict->repeated))
    fallback_.unbook(request.charges, now, booking);
  return verdict;
}

// Runs a request. If its keys have unsynced charges, the same call writes them back first. If those are in flight in
// another call, a request that takes permits fails. Takes no charges for a call that would not be sent.
void FleetStore::run_carrying(ScriptRequest& request, const KeyMemory::Asked& asked) {
  if (asked.unsynced_places != 0 && fails_at_once(request.charges[0])) return;
  auto [batch, are_elsewhere] = backs_.take_for(request.charges, asked.unsynced_places, asked.at);
  // Redis would decide without them, but this node knows them. After an outage its share has admitted the request.
  const bool takes = std::ranges::any_of(request.charges, [](const Charge& one) { return one.cost > 0; });
  if (are_elsewhere && takes && !is_shared(request.charges)) {
    if (batch) backs_.finish(*std::move(batch), {}, asked.at);
    return;
  }
  if (!batch) return run({&request, 1});
  std::vector<Decision> decisions(batch->charges.size());
  std::array<ScriptRequest, 2> requests{batch->tied_request(decisions), std::move(request)};
  run(requests);
  request = std::move(requests[1]);
  const ScriptRequest& written = requests[0];
  backs_.finish(*std::move(batch), WriteBacks::reply_to(written), this->now());
  if (written.state == State::failed) wake();
}

// The verdict of one request after run().
Result<Verdict> FleetStore::take(const ScriptRequest& request, const KeyMemory::Asked& asked, Micros now) {
  if (request.state != State::answered) miss(request.charges, asked);
  if (request.state == State::refused) return request.refusal();
  if (request.state == State::failed) {
    auto verdict = fall_back(request, now);
    decide(request, is_newly_admitted(verdict));
    return verdict;
  }
  counts_.strict.add();
  Verdict verdict{.allowed = request.ruling == Ruling::allowed || request.ruling == Ruling::repeated,
                  .decisions = {request.decisions.begin(), request.decisions.end()},
                  .repeated = request.ruling == Ruling::repeated,
                  .reserved = {request.reserved.begin(), request.reserved.end()}};
  for (std::size_t i = 0; i < verdict.decisions.size(); ++i) {
    verdict.decisions[i].decided_by = DecidedBy::strict;
    const Charge& charge = request.charges[i];
    if (request.what == What::look || charge.limit == nullptr) continue;
    const bool is_of_permits = charge.limit->algorithm == Algorithm::concurrency;  // a permit may be released any time
    const KeyMark mark = memory_.mark_of(KeyName(charge));
    memory_.note(mark, *charge.limit, is_of_permits ? 0 : charge.cost, verdict.decisions[i], request.decided_us, asked,
                 i, now, has_share(charge.key));
  }
  return verdict;
}

// The same for one charge.
Result<Decision> FleetStore::take_one(const ScriptRequest& request, KeyMark mark, const KeyMemory::Asked& asked,
                                      Micros now) {
  const Charge& charge = request.charges[0];
  if (request.state != State::answered) memory_.miss(mark, *charge.limit, charge.cost, asked, 0);
  if (request.state == State::refused) return request.refusal();
  if (request.state == State::failed) {
    auto decision = fall_back(charge, mark, now, booking_of(request));
    decide(request, decision && decision->allowed);
    return decision;
  }
  counts_.strict.add();
  Decision decision = request.decisions[0];
  decision.decided_by = DecidedBy::strict;
  memory_.note(mark, *charge.limit, charge.cost, decision, request.decided_us, asked, 0, now, has_share(charge.key));
  return decision;
}

// After an outage, until all nodes have written their charges back: this node's share decides first, then Redis,
// which is charged. If Redis does not admit the request, the share is refunded.
Result<Decision> FleetStore::check_both(const Charge& charge) {
  const Handover::Pending pending(handover_);
  const std::uint16_t round = memory_.round();
  FallbackStore::Moment charged{};
  auto here = check_here(charge, Booking::none, &charged);
  if (!here || !here->allowed || charge.cost == 0) return here;
  Decision decision;
  ScriptRequest request{.charges = {&charge, 1}, .decisions = {&decision, 1}};
  const KeyMemory::Asked asked = count({&charge, 1});
  run_carrying(request, asked);
  if (request.state != State::failed) {
    auto answer = take_one(request, memory_.mark_of(KeyName(charge)), asked, this->now());
    if (!answer || !answer->allowed) refund_share({&charge, 1}, {1, charged.here, round});
    return answer;
  }
  miss({&charge, 1}, asked);
  fallback_.book_all({&charge, 1}, fallback_.moment(this->now()), booking_of(request));
  decide(request, true);
  return here;
}

Decision FleetStore::from_memory(Decision denial) {
  counts_.cached.add();
  denial.decided_by = DecidedBy::cached;
  return denial;
}

Result<Decision> FleetStore::check_one(const Charge& charge) {
  if (fallback_.is_child()) return check_here(charge);
  if (is_down()) {
    // Until the charge is booked, this node does not report that it is synced, however long this thread stalls.
    const Handover::Pending pending(handover_);
    if (is_down()) return check_here(charge);  // the share starts from the known denial
  }
  if (is_shared(charge)) return check_both(charge);
  const Micros now = this->now();
  const KeyMark mark = memory_.mark_of(KeyName(charge));
  if (would_fail(charge)) {
    const auto denial = may_cache() ? memory_.denial(mark, *charge.limit, charge.cost, now) : std::nullopt;
    if (denial) return from_memory(*denial);
    count_failed(charge);
    return fall_back(charge, mark, now, Booking::unsynced);
  }
  KeyMemory::Asked asked = memory_.begin(now);
  if (const auto denial = denial_or_start(charge, mark, asked, 0, may_cache())) {
    return from_memory(*denial);
  }
  Decision decision;
  ScriptRequest request{.charges = {&charge, 1}, .decisions = {&decision, 1}};
  asked.unsynced_places == 0 ? run({&request, 1}) : run_carrying(request, asked);
  return take_one(request, mark, asked, this->now());
}

Result<Decision> FleetStore::check(const Charge& charge) {
  auto answer = check_one(charge);
  if (charge.cost < 0) drop(charge);
  return answer;
}

// Charges that this node's share must also admit are checked one by one. All others go together, each after the
// unsynced charges of its key.
void FleetStore::check_many(std::span<const Charge> charges, std::int64_t, std::span<Result<Decision>> answers) {
  struct One {
    std::size_t place;    // of its charge
    std::size_t request;  // kNone: Redis would decide without some of its charges, so it counts as failed
    KeyMark mark;
    KeyMemory::Asked asked;
  };
  struct Carried {
    WriteBack batch;
    std::size_t request;
    std::vector<Decision> decisions;
  };
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const Micros now = this->now();
  const bool is_child = fallback_.is_child();
  std::vector<Decision> decisions(charges.size());
  std::vector<ScriptRequest> requests;
  std::vector<One> asked;
  std::deque<Carried> carried;
  requests.reserve(charges.size());
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    if (is_child || is_shared(charge)) {
      answers[i] = check(charge);
      continue;
    }
    One one{.place = i, .request = kNone, .mark = memory_.mark_of(KeyName(charge)), .asked = memory_.begin(now)};
    if (auto denial = denial_or_start(charge, one.mark, one.asked, 0, may_cache())) {
      answers[i] = from_memory(*denial);
      continue;
    }
    if (one.asked.unsynced_places != 0 && fails_at_once(charge)) {
      asked.push_back(one);
      continue;
    }
    auto [batch, are_elsewhere] = backs_.take_for({&charge, 1}, one.asked.unsynced_places, now);
    if (batch) {
      Carried& its = carried.emplace_back(Carried{*std::move(batch), requests.size(), {}});
      its.decisions.resize(its.batch.charges.size());
      requests.push_back(its.batch.tied_request(its.decisions));
    }
    if (!are_elsewhere || charge.cost <= 0) {
      one.request = requests.size();
      requests.push_back({.charges = charges.subspan(i, 1), .decisions = std::span(decisions).subspan(i, 1)});
    }
    asked.push_back(one);
  }
  if (!requests.empty()) run(requests);
  const Micros after = this->now();
  for (Carried& its : carried) {
    const ScriptRequest& request = requests[its.request];
    backs_.finish(std::move(its.batch), WriteBacks::reply_to(request), after);
  }
  for (const One& one : asked) {
    const Charge& charge = charges[one.place];
    const ScriptRequest failed{.charges = {&charge, 1}};
    answers[one.place] = take_one(one.request == kNone ? failed : requests[one.request], one.mark, one.asked, after);
    if (charge.cost < 0) drop(charge);
  }
}

// decide_by_share_first()
//
// After an outage, until all nodes have written their charges back, this node's share must also admit a request.
// Returns the answer if the share denies, or if the answer is complete. While Redis is down, the share is charged
// later, by the fallback. Then the request must not be sent, though another thread may close the breaker at any moment:
// Redis would admit it without the unsynced charges of other nodes, and the share would admit as much once more. In a
// cluster it is unknown at this point which servers are down, so the share is charged first.
FleetStore::ShareFirst FleetStore::decide_by_share_first(ScriptRequest& request) {
  const bool takes = takes_permits(request.what);
  if (!handover_.is_on() || (request.what != What::look && !takes)) return {};
  const std::span<const Charge> charges = request.charges;
  std::vector<Charge> shared;
  ChargedHere charged{.round = memory_.round()};
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (!is_shared(charges[i])) continue;
    shared.push_back(charges[i]);
    charged.places |= std::uint32_t{1} << i;
  }
  if (shared.empty()) return {};
  if (takes && !is_cross_slot(charges) && is_down()) return {.is_unsent = true};
  const FallbackStore::Moment now = fallback_.moment(this->now());
  charged.charged_us = now.here;
  if (!takes) return {fallback_.answer(request, now)};
  auto here = fallback_.answer({.charges = shared}, now, Booking::none);
  if (!here) return {here};
  if (!here->allowed) {
    counts_.fallback.add();
    Verdict verdict;
    std::size_t at = 0;
    for (std::size_t i = 0; i < charges.size(); ++i) {
      if (charged.has(i)) {
        verdict.decisions.push_back(here->decisions[at++]);
      } else {
        verdict.decisions.push_back(
            {.allowed = true, .limit = charges[i].limit->capacity, .decided_by = DecidedBy::local});
      }
    }
    verdict.binding = algorithm::binding_of(verdict.decisions, false);
    return {std::move(verdict)};
  }
  const bool is_complete = request.what == What::charge && shared.size() == charges.size() && !is_cross_slot(charges);
  if (!is_complete) return {.charged = charged};
  const KeyMemory::Asked asked = count(charges);
  run_carrying(request, asked);
  if (request.state != State::failed) {
    auto verdict = take(request, asked, this->now());
    if (!is_newly_admitted(verdict)) refund_share(charges, charged);
    return {std::move(verdict)};
  }
  miss(charges, asked);
  counts_.fallback.add();
  fallback_.book_all(charges, fallback_.moment(this->now()), booking_of(request));
  decide(request, true);
  return {std::move(here)};
}

// Refunds what decide_by_share_first() has charged to this node's share. It was not booked. If the shares have begun
// again since, it was forgotten.
void FleetStore::refund_share(std::span<const Charge> charges, const ChargedHere& charged) {
  if (charged.round != memory_.round()) return;
  std::vector<Charge> back;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charged.has(i) && charges[i].cost != 0) back.push_back(charges[i]);
  }
  if (!back.empty()) fallback_.refund(back, charged.charged_us, {}, this->now());
}

}  // namespace weir::fleet
