// From charges to questions, and from answers to verdicts. See fleet_store.h.
#include "fleet/fleet_apart.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "algorithm/binding.h"
#include "few.h"
#include "fleet/key_name.h"
#include "fleet/own_turn.h"
#include "random_id.h"

namespace weir {
namespace {

using What = ScriptRequest::What;
using Ruling = ScriptRequest::Ruling;

std::int64_t add_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

table::SipKey secret() {
  const std::string dice = random_id() + random_id();
  const table::Hash128 hash = table::siphash<2, 4>({0x77656972, 0x666c6565}, dice);
  return {hash.low, hash.high};
}

bool may_refund(What what) { return what == What::commit; }

// The charges of a request, each key once.
class Merged {
 public:
  Result<void> add(std::span<const Charge> charges) {
    if (charges.size() > kChargesMax) {
      return fail(ErrorCode::out_of_range, "a request is charged to at most " + std::to_string(kChargesMax) +
                                               " limits; this one names " + std::to_string(charges.size()));
    }
    for (const Charge& charge : charges) {
      std::size_t same = 0;
      while (same < merged_.size() && !is_same_key(merged_[same], charge)) ++same;
      places_.add(same);
      if (same == merged_.size()) {
        merged_.add(charge);
        continue;
      }
      if (!(*merged_[same].limit == *charge.limit)) {
        return fail(ErrorCode::invalid_argument,
                    "a key is given twice with different limits: two limits need two keys, such as user:42/second and "
                    "user:42/hour");
      }
      merged_[same].cost = add_saturating(merged_[same].cost, charge.cost);
    }
    return {};
  }
  std::span<const Charge> charges() const { return merged_.all(); }

  // One for each that was given.
  template <class T>
  std::vector<T> spread(std::span<const T> of_merged) const {
    std::vector<T> out;
    for (const std::size_t place : places_) out.push_back(of_merged[place]);
    return out;
  }

 private:
  static bool is_same_key(const Charge& a, const Charge& b) {
    return a.key == b.key && a.limit->algorithm == b.limit->algorithm;
  }
  Few<Charge, kChargesMax> merged_;
  Few<std::size_t, kChargesMax> places_;
};

FleetStoreOptions complete(FleetStoreOptions options) {
  if (options.keeper.id.empty()) options.keeper.id = random_id();
  options.lane.totals = std::make_shared<LaneTotals>(std::move(options.on_change));
  return options;
}

LaneOptions with_events(LaneOptions options, Keeper& keeper) {
  options.client.on_event = [told = std::move(options.client.on_event), &keeper](const redis::Event& event) {
    if (event.kind != redis::Event::Kind::moved) keeper.miss();
    if (told) told(event);
  };
  return options;
}

}  // namespace

FleetStore::FleetStore(FleetStoreOptions options)
    : options_(complete(std::move(options))),
      process_(getpid()),
      memory_(options_.memory_keys, secret()),
      owed_(options_.owed_keys, [this] { thread_->wake(); }),
      lent_(options_.lent_permits),
      local_(memory_, owed_, lent_, options_.kept.seat),
      keeper_(options_.keeper, {memory_, owed_, lent_, local_}, [this] { thread_->wake(); }),
      thread_(std::make_unique<ThreadWay>(options_.target, with_events(lane_options(), keeper_), keeper_)) {
  const Micros since = redis::steady_now() - wall_->now();
  for (const Debt& debt : options_.kept.debts) {
    owed_.add({debt.name, memory_.mark_of(debt.name)}, debt.limit, debt.cost, debt.until + since);
  }
}

FleetStore::~FleetStore() {
  if (getpid() != process_) static_cast<void>(thread_.release());  // after a fork: it is not here to be waited for
}

Keepsake FleetStore::close() {
  thread_->end();
  Keepsake kept{.seat = seat(), .debts = owed_.take(options_.owed_keys)};
  const Micros since = wall_->now() - redis::steady_now();
  for (Debt& debt : kept.debts) debt.until += since;
  return kept;
}

LaneOptions FleetStore::lane_options() const {
  LaneOptions options = options_.lane;
  options.client.spread = [this](Micros drawn) { return own_turn(drawn, seat(), wall_->now()); };
  return options;
}

std::unique_ptr<LoopWay> FleetStore::make_way(Fibers& fibers) const {
  return std::make_unique<LoopWay>(options_.target, lane_options(), fibers);
}

std::vector<RedisHealth> FleetStore::inspect() {
  std::vector<RedisHealth> out;
  for (StoreAnswer& answer :
       keeper_.commands().run({.words = {"INFO"}, .is_for_all = true}, [this] { thread_->wake(); })) {
    RedisHealth& one = out.emplace_back();
    if (answer.value) {
      one = read_info(answer.value->text);
    } else {
      one.error = std::move(answer.value.error().message);
    }
    one.address = std::move(answer.address);
  }
  return out;
}

void FleetStore::run(std::span<Question> questions) {
  if (LoopWay* const way = LoopWay::here()) return way->run(questions);
  if (getpid() == process_) thread_->run(questions);  // after a fork nobody would answer: they have failed
}

bool FleetStore::is_away() const {
  if (const LoopWay* const way = LoopWay::here()) return way->is_away();
  return thread_->is_away();
}

std::optional<Decision> FleetStore::known_denial(const Charge& charge, KeyMark mark, Micros now) {
  if (!options_.remembers_denials || local_.is_child()) return {};
  auto denial = memory_.denial(mark, *charge.limit, charge.cost, now);
  if (denial) denial->made = MadeBy::cached;
  return denial;
}

// One of its limits denies it for sure; what the others have left is told as it was last heard, since a denied request
// is charged nothing.
std::optional<Verdict> FleetStore::known_denial(std::span<const Charge> charges, Micros now) {
  Verdict verdict;
  bool is_denied = false;
  for (const Charge& charge : charges) {
    if (charge.limit->algorithm == Algorithm::concurrency || charge.cost < 0) return {};
    const KeyMark mark = memory_.mark_of(KeyName(charge));
    auto decision = known_denial(charge, mark, now);
    is_denied = is_denied || decision;
    if (!decision) decision = memory_.guess(mark, *charge.limit, charge.cost, now);
    if (!decision) return {};
    decision->made = MadeBy::cached;
    verdict.decisions.push_back(*decision);
  }
  return is_denied ? std::optional(std::move(verdict)) : std::nullopt;
}

// Without Redis. What is looked at comes into the cache while the clocks are read.
Result<Decision> FleetStore::check_here(const Charge& charge) {
  const table::Name place = local_.find(charge);
  const KeyMark mark = KeyMemory::mark_of(place);
  memory_.prefetch(mark);
  const KeyName name(charge);
  counts_.fallen.fetch_add(1, std::memory_order_relaxed);
  return local_.check(charge, place, {name, mark}, redis::steady_now());
}

// Of one question that came back.
Result<Verdict> FleetStore::take(const Question& question, const KeyMemory::Asked& asked, Micros now) {
  if (question.state == Ask::State::refused) return fail(ErrorCode::unavailable, "Redis refuses: " + question.error);
  if (question.state == Ask::State::failed) {
    counts_.fallen.fetch_add(1, std::memory_order_relaxed);
    return local_.answer(question.what, question.charges, question.id, question.lasts, now);
  }
  counts_.strict.fetch_add(1, std::memory_order_relaxed);
  Verdict verdict{.allowed = question.ruling == Ruling::allowed || question.ruling == Ruling::repeated,
                  .decisions = {question.decisions.begin(), question.decisions.end()},
                  .repeated = question.ruling == Ruling::repeated,
                  .reserved = {question.reserved.begin(), question.reserved.end()}};
  for (std::size_t i = 0; i < verdict.decisions.size(); ++i) {
    verdict.decisions[i].made = MadeBy::strict;
    const Charge& charge = question.charges[i];
    if (question.what == What::look || charge.limit == nullptr) continue;
    const bool is_of_permits = charge.limit->algorithm == Algorithm::concurrency;  // one may come back at any time
    const KeyMark mark = memory_.mark_of(KeyName(charge));
    memory_.note(mark, *charge.limit, is_of_permits ? 0 : charge.cost, verdict.decisions[i], asked, now);
  }
  return verdict;
}

// The same, of one charge.
Result<Decision> FleetStore::take_one(const Question& question, KeyMark mark, const KeyMemory::Asked& asked,
                                      Micros now) {
  const Charge& charge = question.charges[0];
  if (question.state == Ask::State::refused) return fail(ErrorCode::unavailable, "Redis refuses: " + question.error);
  if (question.state == Ask::State::failed) return check_here(charge);
  counts_.strict.fetch_add(1, std::memory_order_relaxed);
  Decision decision = question.decisions[0];
  decision.made = MadeBy::strict;
  memory_.note(mark, *charge.limit, charge.cost, decision, asked, now);
  return decision;
}

Result<Decision> FleetStore::check(const Charge& charge) {
  const auto ask = [&]() -> Result<Decision> {
    if (is_away()) return check_here(charge);  // a known denial is where its share begins
    const Micros now = redis::steady_now();
    const KeyMark mark = memory_.mark_of(KeyName(charge));
    if (auto denial = known_denial(charge, mark, now)) {
      counts_.cached.fetch_add(1, std::memory_order_relaxed);
      return *denial;
    }
    Decision decision;
    Question question{.charges = {&charge, 1}, .decisions = {&decision, 1}};
    const KeyMemory::Asked asked = memory_.ask(now);
    run({&question, 1});
    return take_one(question, mark, asked, redis::steady_now());
  };
  auto answer = ask();
  if (charge.cost < 0) drop(charge);
  return answer;
}

void FleetStore::check_many(std::span<const Charge> charges, std::span<Result<Decision>> answers) {
  const Micros now = redis::steady_now();
  std::vector<Question> questions;
  std::vector<Decision> decisions(charges.size());
  std::vector<std::size_t> places;
  questions.reserve(charges.size());
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (auto denial = known_denial(charges[i], memory_.mark_of(KeyName(charges[i])), now)) {
      counts_.cached.fetch_add(1, std::memory_order_relaxed);
      answers[i] = *denial;
      continue;
    }
    questions.push_back({.charges = charges.subspan(i, 1), .decisions = std::span(decisions).subspan(i, 1)});
    places.push_back(i);
  }
  if (questions.empty()) return;
  const KeyMemory::Asked asked = memory_.ask(now);
  run(questions);
  const Micros after = redis::steady_now();
  for (std::size_t i = 0; i < questions.size(); ++i) {
    answers[places[i]] = take_one(questions[i], memory_.mark_of(KeyName(charges[places[i]])), asked, after);
    if (charges[places[i]].cost < 0) drop(charges[places[i]]);
  }
}

// Permits have come back: what was denied for want of them may pass, on every node.
void FleetStore::drop(const Charge& charge) {
  if (local_.is_child()) return;
  keeper_.publish(KeyName(charge));
  thread_->wake();
}

bool FleetStore::is_apart(std::span<const Charge> charges) const {
  if (options_.target.layout != redis::Layout::cluster) return false;
  const std::uint32_t first = redis_tag(subject_of(charges[0].key));
  return std::ranges::any_of(charges, [&](const Charge& one) { return redis_tag(subject_of(one.key)) != first; });
}

Result<Verdict> FleetStore::ask(What what, std::span<const Charge> charges, std::string_view id, Micros lasts) {
  if (what == What::charge) {
    if (auto denial = known_denial(charges, redis::steady_now())) {
      counts_.cached.fetch_add(1, std::memory_order_relaxed);
      return *std::move(denial);
    }
  }
  if (is_apart(charges)) return Apart(*this).ask(what, charges, id, lasts);
  return ask_one(what, charges, id, lasts);
}

// A request as one event: of one subject, or on a server that has all keys.
Result<Verdict> FleetStore::ask_one(What what, std::span<const Charge> charges, std::string_view id, Micros lasts) {
  std::array<Decision, kChargesMax> decisions;
  std::array<std::int64_t, kChargesMax> reserved;
  Question question{.what = what,
                    .charges = charges,
                    .id = id,
                    .lasts = lasts,
                    .decisions = std::span(decisions).first(charges.size()),
                    .reserved = std::span(reserved).first(may_refund(what) ? charges.size() : 0)};
  const KeyMemory::Asked asked = memory_.ask(redis::steady_now());
  run({&question, 1});
  auto verdict = settled(question, take(question, asked, redis::steady_now()));
  if (!verdict) return verdict;
  if (what == What::reserve && question.state == Ask::State::answered && question.ruling == Ruling::repeated) {
    return fail(reserved_already());
  }
  for (const Charge& charge : charges) {
    if (charge.limit != nullptr && (charge.cost < 0 || may_refund(what))) drop(charge);
  }
  return verdict;
}

// settled()
//
// What a commit is told: who was asked may not be who was asked to reserve. What was reserved without Redis is owed,
// and mostly paid by now. What was not used of that does not come back: how much of it Redis had room for is not known.
Result<Verdict> FleetStore::settled(const Question& question, Result<Verdict> verdict) {
  if (question.what != What::commit) return verdict;
  if (question.state == Ask::State::answered && question.ruling == Ruling::missing) {
    return local_.answer(What::commit, question.charges, question.id, {}, redis::steady_now());
  }
  if (question.state == Ask::State::failed && !verdict && verdict.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::unavailable, "Redis cannot be asked now, so the reservation is not settled; try again");
  }
  return verdict;
}

Result<Verdict> FleetStore::charge(std::span<const Charge> charges, RequestId id) {
  Merged merged;
  if (auto added = merged.add(charges); !added) return fail(std::move(added.error()));
  auto verdict = ask(id.name.empty() ? What::charge : What::once, merged.charges(), id.name, id.lasts);
  if (!verdict) return verdict;
  verdict->decisions = merged.spread(std::span<const Decision>(verdict->decisions));
  verdict->binding = binding_of(verdict->decisions, verdict->allowed);
  return verdict;
}

Result<MemoryStore::Judgement> FleetStore::judge(std::span<const Charge> charges, std::span<Decision> decisions) {
  auto verdict = charge(charges);
  if (!verdict) return fail(std::move(verdict.error()));
  std::ranges::copy(verdict->decisions, decisions.begin());
  return MemoryStore::Judgement{verdict->allowed, verdict->binding};
}

Result<Decision> FleetStore::preview(const Charge& charge) {
  auto verdict = ask(What::look, {&charge, 1}, {}, {});
  if (!verdict) return fail(std::move(verdict.error()));
  Decision& seen = verdict->decisions[0];
  if (seen.made != MadeBy::closed || charge.cost <= 0) return seen;
  // As a check would be told, though nobody looks at what is left then.
  seen.allowed = false;
  seen.remaining = 0;
  seen.retry_after = seen.reset_after = Micros{1'000'000};
  return seen;
}

Result<Verdict> FleetStore::overdraw(std::span<const Charge> charges) {
  Merged merged;
  if (auto added = merged.add(charges); !added) return fail(std::move(added.error()));
  auto verdict = ask(What::overdraw, merged.charges(), {}, {});
  if (!verdict) return verdict;
  verdict->decisions = merged.spread(std::span<const Decision>(verdict->decisions));
  verdict->binding = binding_of(verdict->decisions, true);
  return verdict;
}

Result<Verdict> FleetStore::reserve(std::span<const Charge> charges, std::string_view id, Micros lasts) {
  Merged merged;
  if (auto added = merged.add(charges); !added) return fail(std::move(added.error()));
  auto verdict = ask(What::reserve, merged.charges(), id, lasts);
  if (!verdict) return verdict;
  verdict->decisions = merged.spread(std::span<const Decision>(verdict->decisions));
  verdict->binding = binding_of(verdict->decisions, verdict->allowed);
  return verdict;
}

Result<Verdict> FleetStore::commit(std::span<const Charge> actual, std::string_view id) {
  Merged merged;
  if (auto added = merged.add(actual); !added) return fail(std::move(added.error()));
  auto verdict = ask(What::commit, merged.charges(), id, {});
  if (!verdict) return verdict;
  verdict->decisions = merged.spread(std::span<const Decision>(verdict->decisions));
  verdict->reserved = merged.spread(std::span<const std::int64_t>(verdict->reserved));
  verdict->binding = binding_of(verdict->decisions, true);
  verdict->allowed = true;
  return verdict;
}

Result<Decision> FleetStore::acquire(const Charge& charge, std::string_view id) {
  auto verdict = ask(What::acquire, {&charge, 1}, id, {});
  if (!verdict) return fail(std::move(verdict.error()));
  return verdict->decisions[0];
}

// Here first: Redis may be told of the permit in this moment.
Result<bool> FleetStore::release(std::string_view key, std::string_view id) {
  const auto here = local_.release(key, id);
  const Charge charge{.key = key};
  Decision decision;
  Question question{.what = What::release, .charges = {&charge, 1}, .id = id, .decisions = {&decision, 1}};
  run({&question, 1});
  if (question.state == Ask::State::refused) return fail(ErrorCode::unavailable, "Redis refuses: " + question.error);
  if (question.state == Ask::State::failed && !(here && *here)) {
    return fail(ErrorCode::unavailable, "Redis cannot be asked now, so the permits are not released; try again");
  }
  return (question.state == Ask::State::answered && question.ruling == Ruling::allowed) || (here && *here);
}

Result<bool> FleetStore::reset(std::string_view key) {
  const Charge charge{.key = key};
  Decision decision;
  Question question{.what = What::forget, .charges = {&charge, 1}, .decisions = {&decision, 1}};
  run({&question, 1});
  if (question.state == Ask::State::refused) return fail(ErrorCode::unavailable, "Redis refuses: " + question.error);
  if (question.state == Ask::State::failed) {
    return fail(ErrorCode::unavailable, "Redis cannot be asked now, so the key is not reset; try again");
  }
  for (const Algorithm algorithm : kAlgorithms) {
    const KeyName name(algorithm, key);
    keeper_.publish(name);
    owed_.forget(name);
  }
  thread_->wake();
  const auto here = local_.forget(key);
  return question.ruling == Ruling::allowed || (here && *here);
}

}  // namespace weir
