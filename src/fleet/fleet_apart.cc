// Reserve and release. See fleet_apart.h.
#include "fleet/fleet_apart.h"

#include <algorithm>
#include <utility>

#include "algorithm/binding.h"
#include "store/redis_key.h"

namespace weir {
namespace {

using What = ScriptRequest::What;
using Ruling = ScriptRequest::Ruling;

bool is_taken(What what) { return what == What::charge || what == What::once || what == What::reserve; }

}  // namespace

// By subject, in the order they came; but the part with the id of a request is the last.
void FleetStore::Apart::divide(What what, std::span<const Charge> charges, std::string_view id, Micros lasts) {
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const std::uint32_t tag = redis_tag(subject_of(charges[i].key));
    const auto same = std::ranges::find_if(
        parts_, [&](const Part& part) { return redis_tag(subject_of(part.charges[0].key)) == tag; });
    Part& part = same != parts_.end() ? *same : parts_.emplace_back();
    part.charges.push_back(charges[i]);
    part.places.push_back(i);
  }
  if (what == What::once) std::rotate(parts_.begin(), parts_.begin() + 1, parts_.end());
  for (Part& part : parts_) {
    part.decisions.resize(part.charges.size());
    if (what == What::commit) part.reserved.resize(part.charges.size());
    part.question = {.what = what == What::once && &part != &parts_.back() ? What::charge : what,
                     .charges = part.charges,
                     .id = id,
                     .lasts = lasts,
                     .decisions = part.decisions,
                     .reserved = part.reserved};
  }
}

void FleetStore::Apart::ask_parts(std::size_t from, std::size_t to) {
  std::vector<Question> questions;
  for (std::size_t i = from; i < to; ++i) questions.push_back(parts_[i].question);
  store_.run(questions);
  const Micros now = redis::steady_now();
  for (std::size_t i = from; i < to; ++i) {
    parts_[i].question = std::move(questions[i - from]);
    parts_[i].verdict = store_.take(parts_[i].question, now);
  }
}

bool FleetStore::Apart::are_allowed() const {
  return std::ranges::all_of(parts_, [](const Part& part) {
    return part.verdict && part.verdict->allowed && part.question.ruling != Ruling::missing;
  });
}

// What was taken is given back as of when it was: a window that has ended since gets nothing.
void FleetStore::Apart::release() {
  std::vector<Question> questions;
  std::vector<Charge> nothing;
  std::vector<Decision> decisions(kChargesMax);
  std::vector<std::int64_t> reserved(kChargesMax);
  nothing.reserve(kChargesMax);
  for (Part& part : parts_) {
    const Question& taken = part.question;
    if (taken.state != Ask::State::answered || taken.ruling != Ruling::allowed) continue;
    for (std::size_t i = 0; i < part.charges.size(); ++i) {
      if (part.charges[i].cost == 0) continue;
      part.verdict->decisions[i].remaining =
          std::min(part.verdict->decisions[i].limit, part.verdict->decisions[i].remaining + part.charges[i].cost);
      const std::span<const Charge> one(&part.charges[i], 1);
      const std::span<Decision> room = std::span(decisions).subspan(questions.size(), 1);
      if (taken.what == What::reserve) {
        Charge& none = nothing.emplace_back(part.charges[i]);
        none.cost = 0;
        questions.push_back({.what = What::commit,
                             .charges = {&none, 1},
                             .id = taken.id,
                             .decisions = room,
                             .reserved = std::span(reserved).subspan(questions.size(), 1)});
      } else if (part.charges[i].cost > 0) {
        questions.push_back({.what = What::undo, .charges = one, .charged_us = taken.decided_us, .decisions = room});
      } else {
        Charge& again = nothing.emplace_back(part.charges[i]);
        again.cost = -again.cost;
        questions.push_back({.what = What::overdraw, .charges = {&again, 1}, .decisions = room});
      }
    }
  }
  if (questions.empty()) return;
  store_.counts_.released.fetch_add(questions.size(), std::memory_order_relaxed);
  store_.run(questions);
  for (const Question& question : questions) {
    if (question.state != Ask::State::answered) store_.counts_.stuck.fetch_add(1, std::memory_order_relaxed);
    store_.drop(question.charges[0]);
  }
}

Result<Verdict> FleetStore::Apart::put_together(std::size_t charges) const {
  Verdict verdict{.allowed = are_allowed(), .decisions = std::vector<Decision>(charges)};
  const bool is_commit = parts_[0].question.what == What::commit;
  if (is_commit) verdict.reserved.resize(charges);
  for (const Part& part : parts_) {
    if (!part.verdict) return fail(part.verdict.error());
    verdict.repeated = verdict.repeated || part.verdict->repeated;
    for (std::size_t i = 0; i < part.places.size(); ++i) {
      verdict.decisions[part.places[i]] = part.verdict->decisions[i];
      if (is_commit) verdict.reserved[part.places[i]] = part.verdict->reserved[i];
    }
  }
  return verdict;
}

Result<Verdict> FleetStore::Apart::ask(What what, std::span<const Charge> charges, std::string_view id, Micros lasts) {
  divide(what, charges, id, lasts);
  const std::size_t last = what == What::once ? parts_.size() - 1 : parts_.size();
  ask_parts(0, last);
  if (last < parts_.size()) ask_parts(last, parts_.size());
  const bool is_repeated =
      std::ranges::any_of(parts_, [](const Part& part) { return part.question.ruling == Ruling::repeated; });
  if (what == What::reserve && is_repeated) {
    release();
    return fail(reserved_already());
  }
  if (is_taken(what) && (!are_allowed() || is_repeated)) release();
  if (what == What::commit) {
    const bool is_missing =
        std::ranges::any_of(parts_, [](const Part& part) { return part.question.ruling == Ruling::missing; });
    if (is_missing) return fail(not_reserved());
  }
  auto verdict = put_together(charges.size());
  if (verdict && is_repeated) verdict->allowed = true;
  for (const Charge& charge : charges) {
    if (charge.cost < 0 || what == What::commit) store_.drop(charge);
  }
  return verdict;
}

}  // namespace weir
