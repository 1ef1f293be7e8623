// Turns charges into questions, and answers into verdicts. See fleet_store.h.
#include "fleet/fleet_apart.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "algorithm/binding.h"
#include "base/few.h"
#include "base/random_id.h"
#include "fleet/key_name.h"
#include "fleet/own_turn.h"

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

bool is_charged(What what) {
  return what == What::charge || what == What::once || what == What::reserve || what == What::overdraw;
}
bool may_refund(What what) { return what == What::commit; }

// The charges of a request, each key once.
class Merged {
 public:
  Result<void> add(std::span<const Charge> charges) {
    if (charges.size() > kChargesMax) {
      return fail(ErrorCode::out_of_range, "a request can be charged to at most " + std::to_string(kChargesMax) +
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

  // Expands one value per merged charge to one per given charge.
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
      owed_(options_.unsynced_keys, [this] { wake(); }),
      lent_(options_.lent_permits),
      local_(memory_, owed_, lent_, options_.kept.seat),
      handover_(memory_),
      backs_(owed_, memory_),
      keeper_(options_.keeper, {memory_, backs_, owed_, lent_, local_, handover_}, [this] { wake(); }),
      thread_(options_.transport
                  ? nullptr
                  : std::make_unique<ThreadWay>(options_.target, with_events(lane_options(), keeper_), keeper_)) {}

FleetStore::~FleetStore() {
  if (getpid() != process_) static_cast<void>(thread_.release());  // after a fork: the thread does not exist here
}

// From here on, marks use the table's secret. The saved state does not say when its charges were made, so a refund
// does not lower them.
void FleetStore::use(MemoryStore& here) {
  local_.use(here);
  const Micros since = this->now() - wall_->now();
  for (const Debt& debt : std::exchange(kept_, {})) {
    const KeyMark mark = memory_.mark_of(debt.name);
    owed_.add({debt.name, mark}, debt.limit, debt.cost, debt.until + since, {}, INT64_MAX);
    memory_.owe(mark, debt.limit);
  }
}

// Ending the thread ends its connections. The outcome of calls in doubt will stay unknown, so this node's own grants
// among them are unsynced.
Keepsake FleetStore::close() {
  thread_.reset();
  backs_.give_up();
  Keepsake kept{.seat = seat(), .debts = owed_.take(options_.unsynced_keys)};
  const Micros since = wall_->now() - this->now();
  for (Debt& debt : kept.debts) debt.until += since;
  kept.debts.insert(kept.debts.end(), kept_.begin(), kept_.end());
  return kept;
}

LaneOptions FleetStore::lane_options() {
  LaneOptions options = options_.lane;
  options.handover = &handover_;
  options.on_doubt = [this](const Doubt& doubt, const Doubt::Outcome& outcome) { settle(doubt, outcome); };
  options.client.spread = [this](Micros drawn) { return own_turn(drawn, seat(), wall_->now()); };
  return options;
}

std::unique_ptr<LoopWay> FleetStore::make_way(Fibers& fibers) {
  return std::make_unique<LoopWay>(options_.target, lane_options(), fibers);
}

std::vector<RedisHealth> FleetStore::inspect() {
  std::vector<RedisHealth> out;
  for (StoreAnswer& answer : keeper_.commands().run({.words = {"INFO"}, .is_for_all = true}, [this] { wake(); })) {
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
  if (options_.transport) return options_.transport->run(questions);
  if (keeper_.is_barred()) return;  // they have failed
  if (LoopWay* const way = LoopWay::here()) return way->run(questions);
  if (getpid() == process_) thread_->run(questions);  // after a fork there is no thread: they have failed
}

// Whether a question would fail immediately, as far as this loop knows. A question of several keys has one subject.
bool FleetStore::would_fail(const Charge& charge) const {
  LoopWay* const way = options_.transport ? nullptr : LoopWay::here();
  return way != nullptr && way->lane().would_fail(way->lane().slot_of(subject_of(charge.key)));
}

// Counts a question that is not sent because it would fail.
void FleetStore::count_failed(const Charge& charge) const {
  Lane& lane = LoopWay::here()->lane();
  lane.count_failed(lane.slot_of(subject_of(charge.key)));
}

bool FleetStore::is_turned_away(const Charge& charge) const {
  if (!would_fail(charge)) return false;
  count_failed(charge);
  return true;
}

// settle()
//
// Settles a call in doubt. If this node granted the request, what Redis charged for it is this node's charge.
// Otherwise it is undone. The id of a request stays: its retry is admitted and charged nothing. An undo that Redis
// refused as too late is sent again.
//
// Redis's answer is noted first: from then on this charge is part of what is used, and no longer unsynced.
void FleetStore::settle(const Doubt& doubt, const Doubt::Outcome& outcome) {
  if (doubt.what() == What::undo) {
    const Doubt::Part& part = doubt.parts()[0];
    if (outcome.is_refused) {
      keeper_.undos().add(
          {.key = std::string(part.key()), .limit = part.limit, .cost = part.cost, .charged_us = doubt.undoes_us()});
    }
    return wake();
  }
  const KeyMemory::Asked asked = memory_.begin(this->now());
  for (std::size_t i = 0; i < doubt.parts().size(); ++i) {
    const Doubt::Part& part = doubt.parts()[i];
    if (part.cost <= 0) continue;
    const KeyMark mark = memory_.mark_of(part.name);
    if (i < outcome.decisions.size()) {
      memory_.note(mark, part.limit, 0, outcome.decisions[i], outcome.charged_us, asked, i, asked.at);
    }
    if (outcome.is_granted) {
      const Micros until = this->now() + recovery_of(part.limit);
      owed_.settle({.name = part.name, .mark = mark, .limit = part.limit, .cost = part.cost, .until = until},
                   outcome.is_charged);
    } else if (outcome.is_charged && doubt.what() != What::once) {
      keeper_.undos().add({.what = doubt.what(),
                           .key = std::string(part.key()),
                           .limit = part.limit,
                           .cost = part.cost,
                           .id = doubt.id(),
                           .charged_us = outcome.charged_us});
    }
  }
  wake();
}

bool FleetStore::is_away() const {
  if (options_.transport) return options_.transport->is_away();
  if (keeper_.is_barred()) return true;
  if (const LoopWay* const way = LoopWay::here()) return way->is_away();
  return thread_->is_away();
}

// Permits were refunded: denials for lack of them are invalidated on every node.
void FleetStore::drop(const Charge& charge) {
  if (local_.is_child()) return;
  keeper_.publish(KeyName(charge));
  wake();
}

bool FleetStore::is_apart(std::span<const Charge> charges) const {
  if (options_.target.layout != redis::Layout::cluster) return false;
  const std::uint32_t first = redis_tag(subject_of(charges[0].key));
  return std::ranges::any_of(charges, [&](const Charge& one) { return redis_tag(subject_of(one.key)) != first; });
}

Result<Verdict> FleetStore::ask(What what, std::span<const Charge> charges, std::string_view id, Micros lasts) {
  if (what == What::charge) {
    if (auto denial = known_denial(charges, this->now())) {
      counts_.cached.fetch_add(1, std::memory_order_relaxed);
      return *std::move(denial);
    }
  }
  std::optional<Handover::Pending> pending;
  if (handover_.is_on()) pending.emplace(handover_);
  FirstHere here = ask_here_first(what, charges);
  if (here.answer && what == What::once && *here.answer && !(*here.answer)->allowed) {
    return Apart(*this, {}).ask_whether_repeated(charges, id, lasts, **std::move(here.answer));
  }
  if (here.answer) return *std::move(here.answer);
  if (is_apart(charges)) return Apart(*this, here.charged).ask(what, charges, id, lasts);
  return ask_one(what, charges, id, lasts, here.charged);
}

// Decides a request as one event: it has one subject, or one server has all keys.
Result<Verdict> FleetStore::ask_one(What what, std::span<const Charge> charges, std::string_view id, Micros lasts,
                                    const ChargedHere& charged) {
  std::array<Decision, kChargesMax> decisions;
  std::array<std::int64_t, kChargesMax> reserved;
  Question question{.what = what,
                    .charges = charges,
                    .id = id,
                    .lasts = lasts,
                    .decisions = std::span(decisions).first(charges.size()),
                    .reserved = std::span(reserved).first(may_refund(what) ? charges.size() : 0)};
  const KeyMemory::Asked asked = is_charged(what) ? count(charges) : memory_.begin(this->now());
  run_carrying(question, asked);
  if (question.state == Ask::State::failed) give_back(charges, charged);  // the fallback charges it again, with its id
  auto verdict = settled(question, take(question, asked, this->now()));
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
// The answer to a commit. Redis may have decided the reserve and this node the commit, or the reverse. A reservation
// made without Redis is unsynced, and by now mostly written back. Its unused part is not refunded, because it is
// unknown how much of it Redis had capacity for.
Result<Verdict> FleetStore::settled(const Question& question, Result<Verdict> verdict) {
  if (question.what != What::commit) return verdict;
  if (question.state == Ask::State::answered && question.ruling == Ruling::missing) {
    return local_.answer(What::commit, question.charges, question.id, {}, this->now());
  }
  if (question.state == Ask::State::failed && !verdict && verdict.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::unavailable, "Redis is unavailable, so the reservation is not settled; try again");
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
  if (seen.decided_by != DecidedBy::closed || charge.cost <= 0) return seen;
  // Answer as a check would be answered, although a check reads no counts then.
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

// This node first: the permit may be on its way to Redis right now.
Result<bool> FleetStore::release(std::string_view key, std::string_view id) {
  const auto here = local_.release(key, id);
  const Charge charge{.key = key};
  Decision decision;
  Question question{.what = What::release, .charges = {&charge, 1}, .id = id, .decisions = {&decision, 1}};
  run({&question, 1});
  if (question.state == Ask::State::refused)
    return fail(ErrorCode::unavailable, "Redis refused the request: " + question.error);
  if (question.state == Ask::State::failed && !(here && *here)) {
    return fail(ErrorCode::unavailable, "Redis is unavailable, so the permits are not released; try again");
  }
  return (question.state == Ask::State::answered && question.ruling == Ruling::allowed) || (here && *here);
}

Result<bool> FleetStore::reset(std::string_view key) {
  const Charge charge{.key = key};
  Decision decision;
  Question question{.what = What::forget, .charges = {&charge, 1}, .decisions = {&decision, 1}};
  run({&question, 1});
  if (question.state == Ask::State::refused)
    return fail(ErrorCode::unavailable, "Redis refused the request: " + question.error);
  if (question.state == Ask::State::failed) {
    return fail(ErrorCode::unavailable, "Redis is unavailable, so the key is not reset; try again");
  }
  for (const Algorithm algorithm : kAlgorithms) {
    const KeyName name(algorithm, key);
    keeper_.publish(name);
    owed_.forget(memory_.mark_of(name));
  }
  wake();
  const auto here = local_.forget(key);
  return question.ruling == Ruling::allowed || (here && *here);
}

}  // namespace weir
