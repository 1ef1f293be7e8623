// Selects what decides a check: Redis, the record of the key, or this node's share. Part of FleetStore, see
// fleet_store.h.
//
// A check goes to Redis and carries the unsynced charges of its keys. If Redis does not decide it, the record of the
// key does (KeyMemory::spare()). After an outage the share must also admit it (handover.h). Tested by
// tests/fleet_seam_test.cc and tests/fleet_seam_model_test.cc.
#include <algorithm>
#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "algorithm/binding.h"
#include "fleet/fleet_store.h"
#include "fleet/key_name.h"
#include "fleet/redis_key.h"

namespace weir {

using What = ScriptRequest::What;
using Ruling = ScriptRequest::Ruling;

namespace {

Booking booking_of(const Question& question) { return question.doubt ? Booking::doubt : Booking::owe; }

void decide(const Question& question, bool is_granted) {
  if (question.doubt) question.doubt->decide(is_granted);
}

}  // namespace

// The cluster slot of a charge; Handover::kAll without a cluster.
int FleetStore::slot_of(const Charge& charge) const {
  if (options_.target.layout != redis::Layout::cluster) return Handover::kAll;
  std::string head;
  append_redis_head(head, kTicketMark, redis_tag(subject_of(charge.key)));
  return redis::slot_of(head);
}

// Whether this node's share must also admit the charge.
bool FleetStore::is_shared(const Charge& charge) const {
  return handover_.is_on() && charge.cost >= 0 && charge.fallback == Fallback::local &&
         charge.limit->algorithm != Algorithm::concurrency && handover_.concerns(slot_of(charge));
}

bool FleetStore::is_shared(std::span<const Charge> charges) const {
  return handover_.is_on() && std::ranges::any_of(charges, [this](const Charge& one) { return is_shared(one); });
}

// Counts the charges as in flight. Not in a child process, where the memory's locks may be locked forever.
KeyMemory::Asked FleetStore::count(std::span<const Charge> charges) {
  KeyMemory::Asked asked = memory_.begin(this->now());
  if (local_.is_child()) return asked;
  const auto is_any_owed = [this] { return !owed_.is_synced(); };
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    if (charge.limit == nullptr || charge.limit->algorithm == Algorithm::concurrency) continue;
    static_cast<void>(memory_.ask(memory_.mark_of(KeyName(charge)), *charge.limit, charge.cost, asked, i, is_any_owed,
                                  false, is_shared(charge)));
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
  if (!may_cache() || local_.is_child()) return {};
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
Result<Decision> FleetStore::check_here(const Charge& charge, Booking booking) {
  const table::Name place = local_.find(charge);
  const KeyMark mark = KeyMemory::mark_of(place);
  memory_.prefetch(mark);
  const KeyName name(charge);
  counts_.fallback.fetch_add(1, std::memory_order_relaxed);
  return local_.check(charge, place, {name, mark}, this->now(), booking);
}

// Redis did not decide, though it may be healthy. The record of the key decides, else this node's share.
Result<Decision> FleetStore::fall_back(const Charge& charge, KeyMark mark, Micros now, Booking booking) {
  if (!is_shared(charge)) {
    const KeyName name(charge);
    if (const auto decision = local_.shed_one(charge, {name, mark}, local_.moment(now), booking)) {
      counts_.fallback.fetch_add(1, std::memory_order_relaxed);
      if (decision->decided_by == DecidedBy::overloaded) counts_.shed.fetch_add(1, std::memory_order_relaxed);
      return *decision;
    }
  }
  return check_here(charge, booking);
}

// The same for several charges, or with an id.
Result<Verdict> FleetStore::fall_back(const Question& question, Micros steady) {
  const Local::Moment now = local_.moment(steady);
  counts_.fallback.fetch_add(1, std::memory_order_relaxed);
  const Booking booking = booking_of(question);
  bool is_booked = false;
  const bool takes = question.what == What::charge || question.what == What::once || question.what == What::reserve;
  if (takes && !is_shared(question.charges)) {
    auto verdict = local_.shed(question.charges, now, booking);
    if (verdict && verdict->binding_decision().decided_by == DecidedBy::overloaded) {
      counts_.shed.fetch_add(1, std::memory_order_relaxed);
    }
    if (verdict && (question.what == What::charge || !verdict->allowed)) return *std::move(verdict);
    is_booked = verdict.has_value();  // then only its id remains to be stored
  }
  auto verdict = local_.answer(question.what, question.charges, question.id, question.lasts, now,
                               is_booked ? Booking::none : booking);
  if (is_booked && !(verdict && verdict->allowed && !verdict->repeated)) local_.unbook(question.charges, now, booking);
  return verdict;
}

// Runs a question. If its keys have unsynced charges, the same call writes them back first. If those are in flight in
// another call, a question that takes permits fails. Takes no charges for a call that would not be sent.
void FleetStore::run_carrying(Question& question, const KeyMemory::Asked& asked) {
  if (asked.owing != 0 && is_turned_away(question.charges[0])) return;
  auto [batch, are_elsewhere] = backs_.take_for(question.charges, asked.owing, asked.at);
  // Redis would decide without them, but this node knows them. After an outage its share has admitted the request.
  const bool takes = std::ranges::any_of(question.charges, [](const Charge& one) { return one.cost > 0; });
  if (are_elsewhere && takes && !is_shared(question.charges)) {
    if (batch) backs_.finish(*std::move(batch), {}, asked.at);
    return;
  }
  if (!batch) return run({&question, 1});
  std::vector<Decision> decisions(batch->charges.size());
  std::array<Question, 2> questions{batch->tied_question(decisions), std::move(question)};
  run(questions);
  question = std::move(questions[1]);
  const Question& written = questions[0];
  backs_.finish(*std::move(batch), WriteBacks::reply_to(written), this->now());
  if (written.state == Ask::State::failed) wake();
}

// The verdict of one question after run().
Result<Verdict> FleetStore::take(const Question& question, const KeyMemory::Asked& asked, Micros now) {
  if (question.state != Ask::State::answered) miss(question.charges, asked);
  if (question.state == Ask::State::refused)
    return fail(ErrorCode::unavailable, "Redis refused the request: " + question.error);
  if (question.state == Ask::State::failed) {
    auto verdict = fall_back(question, now);
    decide(question, verdict && verdict->allowed && !verdict->repeated);
    return verdict;
  }
  counts_.strict.fetch_add(1, std::memory_order_relaxed);
  Verdict verdict{.allowed = question.ruling == Ruling::allowed || question.ruling == Ruling::repeated,
                  .decisions = {question.decisions.begin(), question.decisions.end()},
                  .repeated = question.ruling == Ruling::repeated,
                  .reserved = {question.reserved.begin(), question.reserved.end()}};
  for (std::size_t i = 0; i < verdict.decisions.size(); ++i) {
    verdict.decisions[i].decided_by = DecidedBy::strict;
    const Charge& charge = question.charges[i];
    if (question.what == What::look || charge.limit == nullptr) continue;
    const bool is_of_permits = charge.limit->algorithm == Algorithm::concurrency;  // a permit may be released any time
    const KeyMark mark = memory_.mark_of(KeyName(charge));
    memory_.note(mark, *charge.limit, is_of_permits ? 0 : charge.cost, verdict.decisions[i], question.decided_us, asked,
                 i, now);
  }
  return verdict;
}

// The same for one charge.
Result<Decision> FleetStore::take_one(const Question& question, KeyMark mark, const KeyMemory::Asked& asked,
                                      Micros now) {
  const Charge& charge = question.charges[0];
  if (question.state != Ask::State::answered) memory_.miss(mark, *charge.limit, charge.cost, asked, 0);
  if (question.state == Ask::State::refused)
    return fail(ErrorCode::unavailable, "Redis refused the request: " + question.error);
  if (question.state == Ask::State::failed) {
    auto decision = fall_back(charge, mark, now, booking_of(question));
    decide(question, decision && decision->allowed);
    return decision;
  }
  counts_.strict.fetch_add(1, std::memory_order_relaxed);
  Decision decision = question.decisions[0];
  decision.decided_by = DecidedBy::strict;
  memory_.note(mark, *charge.limit, charge.cost, decision, question.decided_us, asked, 0, now);
  return decision;
}

// After an outage, until all nodes have written their charges back: this node's share decides first, then Redis,
// which is charged.
Result<Decision> FleetStore::check_both(const Charge& charge) {
  const Handover::Pending pending(handover_);
  auto here = check_here(charge, Booking::none);
  if (!here || !here->allowed || charge.cost == 0) return here;
  Decision decision;
  Question question{.charges = {&charge, 1}, .decisions = {&decision, 1}};
  const KeyMemory::Asked asked = count({&charge, 1});
  run_carrying(question, asked);
  if (question.state != Ask::State::failed) {
    return take_one(question, memory_.mark_of(KeyName(charge)), asked, this->now());
  }
  miss({&charge, 1}, asked);
  local_.book_all({&charge, 1}, local_.moment(this->now()), booking_of(question));
  decide(question, true);
  return here;
}

Decision FleetStore::from_memory(Decision denial) {
  counts_.cached.fetch_add(1, std::memory_order_relaxed);
  denial.decided_by = DecidedBy::cached;
  return denial;
}

Result<Decision> FleetStore::check_one(const Charge& charge) {
  if (is_away() || local_.is_child()) return check_here(charge);  // the share starts from the known denial
  if (is_shared(charge)) return check_both(charge);
  const Micros now = this->now();
  const KeyMark mark = memory_.mark_of(KeyName(charge));
  if (would_fail(charge)) {
    const auto denial = may_cache() ? memory_.denial(mark, *charge.limit, charge.cost, now) : std::nullopt;
    if (denial) return from_memory(*denial);
    count_failed(charge);
    return fall_back(charge, mark, now, Booking::owe);
  }
  KeyMemory::Asked asked = memory_.begin(now);
  const auto is_any_owed = [this] { return !owed_.is_synced(); };
  if (const auto denial = memory_.ask(mark, *charge.limit, charge.cost, asked, 0, is_any_owed, may_cache())) {
    return from_memory(*denial);
  }
  Decision decision;
  Question question{.charges = {&charge, 1}, .decisions = {&decision, 1}};
  asked.owing == 0 ? run({&question, 1}) : run_carrying(question, asked);
  return take_one(question, mark, asked, this->now());
}

Result<Decision> FleetStore::check(const Charge& charge) {
  auto answer = check_one(charge);
  if (charge.cost < 0) drop(charge);
  return answer;
}

// Charges that this node's share must also admit are checked one by one. All others go together, each after the
// unsynced charges of its key.
void FleetStore::check_many(std::span<const Charge> charges, std::span<Result<Decision>> answers) {
  struct One {
    std::size_t place;     // of its charge
    std::size_t question;  // kNone: Redis would decide without some of its charges, so it has failed
    KeyMark mark;
    KeyMemory::Asked asked;
  };
  struct Carried {
    WriteBack batch;
    std::size_t question;
    std::vector<Decision> decisions;
  };
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const Micros now = this->now();
  const bool is_child = local_.is_child();
  std::vector<Decision> decisions(charges.size());
  std::vector<Question> questions;
  std::vector<One> asked;
  std::deque<Carried> carried;
  questions.reserve(charges.size());
  const auto is_any_owed = [this] { return !owed_.is_synced(); };
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    if (is_child || is_shared(charge)) {
      answers[i] = check(charge);
      continue;
    }
    One one{.place = i, .question = kNone, .mark = memory_.mark_of(KeyName(charge)), .asked = memory_.begin(now)};
    if (auto denial = memory_.ask(one.mark, *charge.limit, charge.cost, one.asked, 0, is_any_owed, may_cache())) {
      answers[i] = from_memory(*denial);
      continue;
    }
    if (one.asked.owing != 0 && is_turned_away(charge)) {
      asked.push_back(one);
      continue;
    }
    auto [batch, are_elsewhere] = backs_.take_for({&charge, 1}, one.asked.owing, now);
    if (batch) {
      Carried& its = carried.emplace_back(Carried{*std::move(batch), questions.size(), {}});
      its.decisions.resize(its.batch.charges.size());
      questions.push_back(its.batch.tied_question(its.decisions));
    }
    if (!are_elsewhere || charge.cost <= 0) {
      one.question = questions.size();
      questions.push_back({.charges = charges.subspan(i, 1), .decisions = std::span(decisions).subspan(i, 1)});
    }
    asked.push_back(one);
  }
  if (!questions.empty()) run(questions);
  const Micros after = this->now();
  for (Carried& its : carried) {
    const Question& question = questions[its.question];
    backs_.finish(std::move(its.batch), WriteBacks::reply_to(question), after);
  }
  for (const One& one : asked) {
    const Charge& charge = charges[one.place];
    const Question failed{.charges = {&charge, 1}};
    answers[one.place] = take_one(one.question == kNone ? failed : questions[one.question], one.mark, one.asked, after);
    if (charge.cost < 0) drop(charge);
  }
}

// ask_here_first()
//
// After an outage, until all nodes have written their charges back, this node's share must also admit a request.
// Returns the answer if the share denies, or if the answer is complete. While Redis is down this is skipped, and the
// share is charged after Redis has failed. In a cluster it is unknown at this point which servers are down.
FleetStore::FirstHere FleetStore::ask_here_first(What what, std::span<const Charge> charges) {
  const bool takes = what == What::charge || what == What::once || what == What::reserve;
  if (!handover_.is_on() || (what != What::look && !takes)) return {};
  std::vector<Charge> shared;
  ChargedHere charged;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (!is_shared(charges[i])) continue;
    shared.push_back(charges[i]);
    charged.places |= std::uint32_t{1} << i;
  }
  if (shared.empty() || (takes && is_away())) return {};
  const Local::Moment now = local_.moment(this->now());
  charged.charged_us = now.here;
  if (!takes) return {local_.answer(what, charges, {}, {}, now)};
  auto here = local_.answer(What::charge, shared, {}, {}, now, Booking::none);
  if (!here) return {here};
  if (!here->allowed) {
    counts_.fallback.fetch_add(1, std::memory_order_relaxed);
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
    verdict.binding = binding_of(verdict.decisions, false);
    return {std::move(verdict)};
  }
  if (what != What::charge || shared.size() != charges.size() || is_apart(charges)) return {.charged = charged};
  std::array<Decision, kChargesMax> decisions;
  Question question{.charges = charges, .decisions = std::span(decisions).first(charges.size())};
  const KeyMemory::Asked asked = count(charges);
  run_carrying(question, asked);
  if (question.state != Ask::State::failed) return {take(question, asked, this->now())};
  miss(charges, asked);
  counts_.fallback.fetch_add(1, std::memory_order_relaxed);
  local_.book_all(charges, local_.moment(this->now()), booking_of(question));
  decide(question, true);
  return {std::move(here)};
}

// Refunds what ask_here_first() has charged to this node's share. It was not booked.
void FleetStore::give_back(std::span<const Charge> charges, const ChargedHere& charged) {
  std::vector<Charge> back;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charged.has(i) && charges[i].cost != 0) back.push_back(charges[i]);
  }
  if (!back.empty()) local_.refund(back, charged.charged_us, {}, this->now());
}

}  // namespace weir
