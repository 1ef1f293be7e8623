// Charges the parts, and refunds them if one denies. See cross_slot_request.h.
#include "fleet/cross_slot_request.h"

#include <algorithm>
#include <utility>

#include "algorithm/binding.h"
#include "fleet/redis_key.h"

namespace weir::fleet {

// Groups charges by subject, in their order, or leaves each alone. The part with the id of a request is the last.
void FleetStore::CrossSlotRequest::divide() {
  const std::span<const Charge> charges = whole_.charges;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const std::uint32_t tag = redis_tag(subject_of(charges[i].key));
    const auto same = std::ranges::find_if(parts_, [&](const Part& part) {
      return by_ == By::subject && redis_tag(subject_of(part.charges[0].key)) == tag;
    });
    Part& part = same != parts_.end() ? *same : parts_.emplace_back();
    part.charges.push_back(charges[i]);
    part.places.push_back(i);
  }
  if (whole_.what == What::once) std::rotate(parts_.begin(), parts_.begin() + 1, parts_.end());
  for (Part& part : parts_) {
    part.decisions.resize(part.charges.size());
    if (whole_.what == What::commit) part.reserved.resize(part.charges.size());
    part.request = whole_.about(part.charges);
    if (whole_.what == What::once && &part != &parts_.back()) part.request.what = What::charge;
    part.request.decisions = part.decisions;
    part.request.reserved = part.reserved;
  }
}

// A part in flight.
struct FleetStore::CrossSlotRequest::Sent {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  KeyMemory::Asked asked{};
  std::optional<WriteBack> batch{};  // the unsynced charges of its keys
  std::vector<Decision> decisions{};
  std::size_t written = kNone, request = kNone;  // their requests; none: Redis would decide without some of them
};

FleetStore::CrossSlotRequest::Sent FleetStore::CrossSlotRequest::send(Part& part,
                                                                      std::vector<ScriptRequest>& requests) {
  const bool takes = takes_permits(part.request.what);
  const bool is_counted = takes || part.request.what == What::overdraw;
  Sent sent{.asked = is_counted ? store_.count(part.charges) : store_.memory_.begin(store_.now())};
  auto [batch, are_elsewhere] = store_.backs_.take_for(part.charges, sent.asked.unsynced_places, sent.asked.at);
  sent.batch = std::move(batch);
  if (are_elsewhere && takes && !store_.is_shared(part.charges)) return sent;
  if (sent.batch) {
    sent.decisions.resize(sent.batch->charges.size());
    sent.written = requests.size();
    requests.push_back(sent.batch->tied_request(sent.decisions));
  }
  sent.request = requests.size();
  requests.push_back(part.request);
  return sent;
}

void FleetStore::CrossSlotRequest::run_parts(std::size_t from, std::size_t to) {
  std::vector<ScriptRequest> requests;
  std::vector<Sent> all;
  for (std::size_t i = from; i < to; ++i) all.push_back(send(parts_[i], requests));
  if (!requests.empty()) store_.run(requests);
  const Micros now = store_.now();
  for (std::size_t i = from; i < to; ++i) {
    Part& part = parts_[i];
    Sent& sent = all[i - from];
    if (sent.batch) {
      const ScriptRequest none, &written = sent.written == Sent::kNone ? none : requests[sent.written];
      store_.backs_.finish(*std::move(sent.batch), WriteBacks::reply_to(written), now);
      if (written.state == State::failed) store_.wake();
    }
    if (sent.request != Sent::kNone) part.request = std::move(requests[sent.request]);
    part.is_left = part.request.state == State::failed;
    if (part.is_left) {
      store_.miss(part.charges, sent.asked);
      // What this node decides instead is unsynced anyway. If the server has charged the part, that charge is undone.
      if (part.request.doubt) part.request.doubt->decide(false);
    } else {
      part.verdict = store_.take(part.request, sent.asked, now);
    }
  }
}

// The request is denied, unless it was admitted before. Sends its last part with costs that can never pass, because
// Redis would remember the id of an admitted request. The same call also reads the state of the keys.
void FleetStore::CrossSlotRequest::ask_whether_repeated(Part& part) {
  std::vector<Charge> charges = part.charges;
  for (Charge& charge : charges) charge.cost = charge.limit->capacity + 1;
  std::vector<Decision> decisions(charges.size());
  std::vector<ScriptRequest> requests{part.request};
  requests[0].charges = charges;
  requests[0].decisions = decisions;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    requests.push_back({.what = What::look,
                        .charges = std::span(part.charges).subspan(i, 1),
                        .decisions = std::span(part.decisions).subspan(i, 1)});
  }
  const KeyMemory::Asked asked = store_.memory_.begin(store_.now());
  store_.run(requests);
  part.is_left = std::ranges::any_of(requests, [](const ScriptRequest& one) { return one.state == State::failed; });
  if (part.is_left) return;
  part.request.state = requests[0].state;
  part.request.error = requests[0].error;
  part.request.ruling = requests[0].ruling;
  part.verdict = store_.take(part.request, asked, store_.now());
}

std::vector<Charge> FleetStore::CrossSlotRequest::undecided() const {
  std::vector<Charge> charges;
  for (const Part& part : parts_) {
    if (part.is_left && !part.is_here) charges.insert(charges.end(), part.charges.begin(), part.charges.end());
  }
  return charges;
}

// Returns charges of the parts that this node decides by decide_from_known() (`is_spared`) or by its share: those that
// the share was charged for before (`was_charged`), or the others.
std::vector<Charge> FleetStore::CrossSlotRequest::undecided(bool is_spared, bool was_charged) const {
  std::vector<Charge> charges;
  for (const Part& part : parts_) {
    if (!part.is_left || part.is_here || part.is_spared != is_spared) continue;
    for (std::size_t i = 0; i < part.charges.size(); ++i) {
      if (charged_.has(part.places[i]) == was_charged) charges.push_back(part.charges[i]);
    }
  }
  return charges;
}

// What this node would decide for each charge on its own.
Result<Verdict> FleetStore::CrossSlotRequest::peek_share() const {
  Verdict seen{.allowed = true};
  const std::vector<Charge> charges = undecided();
  for (const Charge& charge : charges) {
    auto one = store_.fallback_.answer({.what = What::look, .charges = {&charge, 1}}, store_.now());
    if (!one) return one;
    seen.allowed = seen.allowed && one->allowed;
    seen.decisions.push_back(one->decisions[0]);
  }
  return seen;
}

// The part with the id, if other parts deny: it is asked as in ask_whether_repeated().
Result<Verdict> FleetStore::CrossSlotRequest::once_here() {
  std::vector<Charge> charges = undecided();
  for (Charge& charge : charges) charge.cost = charge.limit->capacity + 1;
  auto verdict = store_.fallback_.answer(whole_.about(charges), store_.now());
  return verdict && !verdict->repeated ? peek_share() : verdict;
}

// Decides from what Redis last said was left. Returns nothing if this applies to no part, or cannot decide. Then the
// share decides.
std::optional<Verdict> FleetStore::CrossSlotRequest::decide_from_known() {
  for (Part& part : parts_) {
    part.is_spared = part.is_left && (part.is_spared || (!part.is_here && !store_.is_shared(part.charges)));
  }
  const std::vector<Charge> charges = undecided(true, false);
  if (charges.empty()) return {};
  spared_ = store_.fallback_.moment(store_.now());
  auto verdict = store_.fallback_.decide_from_known(charges, spared_, Booking::unsynced);
  if (verdict && verdict->binding_decision().decided_by == DecidedBy::overloaded) {
    store_.counts_.shed.add();
  }
  if (verdict) return verdict;
  for (Part& part : parts_) {
    if (!part.is_here) part.is_spared = false;
  }
  return {};
}

// Charges that the share admitted before are only booked. With an id they are charged again, together with the id.
Result<Verdict> FleetStore::CrossSlotRequest::share(What what) {
  const FallbackStore::Moment now = shared_ = store_.fallback_.moment(store_.now());
  const std::vector<Charge> before = undecided(false, true), others = undecided(false, false);
  if (what == What::charge) {
    Result<Verdict> verdict = Verdict{.allowed = true};
    if (!others.empty()) verdict = store_.fallback_.answer({.charges = others}, now);
    if (verdict && verdict->allowed) store_.fallback_.book_all(before, now, Booking::unsynced);
    return verdict;
  }
  store_.refund_share(before, {~std::uint32_t{0}, charged_.charged_us, charged_.round});
  for (const Part& part : parts_) {
    if (!part.is_left || part.is_here || part.is_spared) continue;
    for (const std::size_t place : part.places) take_charged(place);
  }
  auto verdict = store_.fallback_.answer(whole_.about(undecided()), now, Booking::none);
  if (!verdict || !verdict->allowed || verdict->repeated) return verdict;
  store_.fallback_.book_all(before, now, Booking::unsynced);
  store_.fallback_.book_all(others, now, Booking::unsynced);
  return verdict;
}

// Admits all parts left to this node, or none. Returns a decision for each charge, in the order of the parts.
Result<Verdict> FleetStore::CrossSlotRequest::admit_here(What what) {
  const auto spared = decide_from_known();
  const bool is_denied = spared && !spared->allowed;
  Result<Verdict> shared = Verdict{};
  if (!is_denied) shared = share(what);
  const bool is_admitted = shared && shared->allowed && !shared->repeated;
  if (!is_denied && !is_admitted && spared) store_.fallback_.unbook(undecided(true, false), spared_, Booking::unsynced);
  if (!shared || (!is_denied && what != What::charge)) return shared;
  Verdict verdict{.allowed = is_admitted};
  std::size_t of_spared = 0, of_shared = 0;
  for (const Part& part : parts_) {
    if (!part.is_left || part.is_here) continue;
    for (std::size_t i = 0; i < part.charges.size(); ++i) {
      const bool was_charged = charged_.has(part.places[i]);
      if (part.is_spared) {
        verdict.decisions.push_back(spared->decisions[of_spared++]);
      } else if (!is_denied && !was_charged) {
        verdict.decisions.push_back(shared->decisions[of_shared++]);
      } else {
        Charge peek = part.charges[i];
        peek.cost = 0;
        const auto seen = store_.fallback_.answer({.what = What::look, .charges = {&peek, 1}}, store_.now());
        if (!seen) return seen;
        verdict.decisions.push_back(seen->decisions[0]);
      }
    }
  }
  return verdict;
}

void FleetStore::CrossSlotRequest::decide_here(What what) {
  const std::vector<Charge> charges = undecided();
  if (charges.empty()) return;
  const bool is_over = takes_permits(what) && (is_denied() || is_repeated());
  const auto all = is_over && what == What::once ? once_here()
                   : is_over                     ? peek_share()
                   : takes_permits(what)         ? admit_here(what)
                                                 : store_.fallback_.answer(whole_.about(charges), store_.now());
  std::size_t at = 0;
  for (Part& part : parts_) {
    if (!part.is_left || std::exchange(part.is_here, true)) continue;
    if (!all) {
      part.verdict = fail(all.error());
      continue;
    }
    const std::size_t count = part.charges.size();
    part.verdict = Verdict{.allowed = all->allowed, .repeated = all->repeated};
    part.is_charged_here = what == What::charge && !is_over && all->allowed;
    for (std::size_t i = at; i < at + count; ++i) {
      part.verdict->decisions.push_back(all->decisions[i]);
      if (!all->reserved.empty()) part.verdict->reserved.push_back(all->reserved[i]);
    }
    at += count;
  }
}

// Whether a server or this node has denied a part.
bool FleetStore::CrossSlotRequest::is_denied() const {
  return std::ranges::any_of(parts_, [](const Part& part) {
    const bool is_decided = part.is_here || part.request.state != State::failed;
    return is_decided && (!part.verdict || !part.verdict->allowed);
  });
}

bool FleetStore::CrossSlotRequest::is_repeated() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.verdict && part.verdict->repeated; });
}

bool FleetStore::CrossSlotRequest::are_allowed() const {
  return std::ranges::all_of(parts_, [](const Part& part) { return part.verdict && part.verdict->allowed; });
}

// Refunds what this node's share was charged for a part. A part with a negative cost is charged for what it received.
void FleetStore::CrossSlotRequest::release_here(const Part& part) {
  for (std::size_t i = 0; i < part.charges.size(); ++i) {
    const Charge& charge = part.charges[i];
    if (charge.cost < 0) {
      Charge again = charge;
      again.cost = -again.cost;
      static_cast<void>(store_.fallback_.answer({.what = What::overdraw, .charges = {&again, 1}}, store_.now()));
    } else if (charge.cost > 0 && charge.limit->algorithm != Algorithm::concurrency) {
      const std::int64_t charged_us = charged_.has(part.places[i]) ? charged_.charged_us : shared_.here;
      store_.fallback_.refund({&charge, 1}, charged_us, shared_.here, store_.now());
      take_charged(part.places[i]);
    }
  }
}

// Queues an undo that was not executed. If it may have been executed, only its late reply shows that it was refused.
void FleetStore::CrossSlotRequest::undo_later(const ScriptRequest& request) {
  if (request.state == State::answered) return;
  if (request.doubt) return request.doubt->decide(false);
  const bool is_reserved = request.what == What::commit;
  if (request.state != State::failed || request.what == What::overdraw || (request.is_in_doubt && !is_reserved)) {
    store_.counts_.failed_refunds.add();
    return;
  }
  const Charge& charge = request.charges[0];
  store_.background_.undos().add({.what = is_reserved ? What::reserve : What::charge,
                                  .key = std::string(charge.key),
                                  .limit = *charge.limit,
                                  .cost = charge.cost,
                                  .id = std::string(request.id),
                                  .charged_us = request.charged_us});
}

// Refunds charges with the time they were made: a window that has ended since receives nothing.
void FleetStore::CrossSlotRequest::release() {
  std::vector<ScriptRequest> requests;
  std::vector<Charge> nothing;
  std::vector<Decision> decisions(kChargesMax);
  std::vector<std::int64_t> reserved(kChargesMax);
  nothing.reserve(kChargesMax);
  for (Part& part : parts_) {
    const ScriptRequest& taken = part.request;
    if (part.is_charged_here && part.is_spared) {
      store_.fallback_.unbook(part.charges, spared_, Booking::unsynced);
    } else if (part.is_charged_here) {
      release_here(part);
    }
    if (taken.state != State::answered || taken.ruling != Ruling::allowed) continue;
    for (std::size_t i = 0; i < part.charges.size(); ++i) {
      if (part.charges[i].cost == 0 && taken.what != What::reserve) continue;
      part.verdict->decisions[i].remaining =
          std::min(part.verdict->decisions[i].limit, part.verdict->decisions[i].remaining + part.charges[i].cost);
      const std::span<const Charge> one(&part.charges[i], 1);
      const std::span<Decision> room = std::span(decisions).subspan(requests.size(), 1);
      if (taken.what == What::reserve) {
        Charge& none = nothing.emplace_back(part.charges[i]);
        none.cost = 0;
        requests.push_back({.what = What::commit,
                            .charges = {&none, 1},
                            .id = taken.id,
                            .decisions = room,
                            .reserved = std::span(reserved).subspan(requests.size(), 1)});
      } else if (part.charges[i].cost > 0) {
        requests.push_back({.what = What::undo, .charges = one, .charged_us = taken.decided_us, .decisions = room});
      } else {
        Charge& again = nothing.emplace_back(part.charges[i]);
        again.cost = -again.cost;
        requests.push_back({.what = What::overdraw, .charges = {&again, 1}, .decisions = room});
      }
    }
  }
  if (requests.empty()) return;
  store_.counts_.refunds.add(requests.size());
  store_.run(requests);
  for (const ScriptRequest& request : requests) {
    undo_later(request);
    store_.drop(request.charges[0]);
  }
}

// A commit: if one part could not be settled, a retry finds the other parts settled before.
void FleetStore::CrossSlotRequest::settle() {
  for (Part& part : parts_) part.verdict = store_.finish_commit(part.request, std::move(part.verdict));
  if (std::ranges::none_of(parts_, [](const Part& part) { return part.verdict.has_value(); })) return;
  for (Part& part : parts_) {
    if (part.verdict || part.verdict.error().code != ErrorCode::not_found) continue;
    part.verdict = Verdict{.allowed = true,
                           .decisions = std::move(part.decisions),
                           .reserved = std::vector<std::int64_t>(part.charges.size())};
  }
}

Result<Verdict> FleetStore::CrossSlotRequest::merge_verdicts() const {
  const std::size_t charges = whole_.charges.size();
  Verdict verdict{.allowed = are_allowed(), .decisions = std::vector<Decision>(charges)};
  const bool is_commit = whole_.what == What::commit;
  if (is_commit) verdict.reserved.resize(charges);
  for (const Part& part : parts_) {
    if (!part.verdict && part.verdict.error().code == ErrorCode::unavailable) return part.verdict;
  }
  for (const Part& part : parts_) {
    if (!part.verdict) return part.verdict;
    verdict.repeated = verdict.repeated || part.verdict->repeated;
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      verdict.decisions[part.places[i]] = part.verdict->decisions[i];
      if (is_commit) verdict.reserved[part.places[i]] = part.verdict->reserved[i];
    }
  }
  return verdict;
}

Result<Verdict> FleetStore::CrossSlotRequest::ask() {
  const What what = whole_.what;
  const std::span<const Charge> charges = whole_.charges;
  divide();
  const std::size_t last = what == What::once ? parts_.size() - 1 : parts_.size();
  run_parts(0, last);
  if (last < parts_.size()) {
    decide_here(What::charge);
    is_denied() ? ask_whether_repeated(parts_.back()) : run_parts(last, parts_.size());
  }
  decide_here(what);
  if (std::ranges::any_of(parts_, &Part::is_here)) store_.counts_.fallback.add();
  if (what == What::reserve && is_repeated()) {
    release();
    store_.refund_share(charges, charged_);
    return fail(store::reserved_already());
  }
  if (takes_permits(what) && (!are_allowed() || is_repeated())) {
    release();
    store_.refund_share(charges, charged_);  // also of parts that Redis has decided
  }
  if (what == What::commit) settle();
  auto verdict = merge_verdicts();
  if (verdict && is_repeated()) verdict->allowed = true;
  for (const Charge& charge : charges) {
    if (charge.cost < 0 || what == What::commit) store_.drop(charge);
  }
  return verdict;
}

Result<Verdict> FleetStore::CrossSlotRequest::ask_whether_repeated(Verdict denial) {
  divide();
  Part& part = parts_.back();
  ask_whether_repeated(part);
  const auto known = part.is_left ? once_here() : part.verdict;
  if (known && known->repeated) denial.allowed = denial.repeated = true;
  return denial;
}

}  // namespace weir::fleet
