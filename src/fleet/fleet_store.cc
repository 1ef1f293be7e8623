// Turns charges into requests, and answers into verdicts. See fleet_store.h.
#include "fleet/cross_slot_request.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/random_id.h"
#include "fleet/key_name.h"
#include "fleet/own_turn.h"

namespace weir::fleet {
namespace {

base::SipKey secret() {
  const std::string dice = base::random_id() + base::random_id();
  const base::Hash128 hash = base::siphash<2, 4>({0x77656972, 0x666c6565}, dice);
  return {hash.low, hash.high};
}

bool is_charged(What what) { return takes_permits(what) || what == What::overdraw; }

What what_of(const store::Store::Request& request) {
  switch (request.what) {
    case store::Store::Request::What::charge:
      return request.id.empty() ? What::charge : What::once;
    case store::Store::Request::What::overdraw:
      return What::overdraw;
    case store::Store::Request::What::reserve:
      return What::reserve;
    case store::Store::Request::What::commit:
    case store::Store::Request::What::refund:  // the memory store's only
      break;
  }
  return What::commit;
}

FleetStoreOptions complete(FleetStoreOptions options) {
  if (options.membership.id.empty()) options.membership.id = base::random_id();
  options.pipeline.totals = std::make_shared<PipelineTotals>(std::move(options.on_change));
  return options;
}

PipelineOptions with_events(PipelineOptions options, BackgroundWork& background) {
  options.client.on_event = [on_event = std::move(options.client.on_event), &background](const redis::Event& event) {
    if (event.kind != redis::Event::Kind::moved) background.on_reconnect();
    if (on_event) on_event(event);
  };
  return options;
}

}  // namespace

FleetStore::FleetStore(FleetStoreOptions options)
    : options_(complete(std::move(options))),
      process_(getpid()),
      memory_(options_.memory_keys, secret(), [this](std::string_view key) { return has_share(key); }),
      unsynced_(options_.unsynced_keys, [this] { wake(); }),
      unsynced_permits_(options_.unsynced_permits),
      fallback_(memory_, unsynced_, unsynced_permits_, options_.kept.rank),
      handover_(memory_),
      backs_(unsynced_, memory_),
      background_(options_.membership, options_.on_invalidation_refused,
                  {memory_, backs_, unsynced_, unsynced_permits_, fallback_, handover_}, [this] { wake(); }) {
  if (!kept_.empty()) kept_pending_.emplace(handover_);  // before the first heartbeat
  if (options_.transport) return;
  thread_ = std::make_unique<ThreadWaiter>(options_.target, with_events(pipeline_options(), background_), background_);
}

FleetStore::~FleetStore() {
  if (getpid() != process_) static_cast<void>(thread_.release());  // after a fork: the thread does not exist here
}

// From here on, marks use the table's secret. The saved state does not say when its charges were made, so a refund
// does not lower them. Until Redis has them, this node does not report that it is synced.
void FleetStore::use(store::MemoryStore& here) {
  fallback_.use(here);
  const Micros since = this->now() - wall_->now();
  for (const UnsyncedCharge& charge : std::exchange(kept_, {})) {
    const KeyMark mark = memory_.mark_of(charge.name);
    unsynced_.add({charge.name, mark}, charge.limit, charge.cost, charge.until + since, {}, INT64_MAX);
    memory_.mark_unsynced(mark, charge.limit);
  }
  kept_pending_.reset();
}

// Ending the thread ends its connections. The outcome of calls in doubt will stay unknown, so this node's own grants
// among them are unsynced.
SavedFleetState FleetStore::close() {
  thread_.reset();
  backs_.give_up();
  SavedFleetState kept{.rank = rank(), .charges = unsynced_.take(options_.unsynced_keys)};
  const Micros since = wall_->now() - this->now();
  for (UnsyncedCharge& charge : kept.charges) charge.until += since;
  kept.charges.insert(kept.charges.end(), kept_.begin(), kept_.end());
  return kept;
}

PipelineOptions FleetStore::pipeline_options() {
  PipelineOptions options = options_.pipeline;
  options.handover = &handover_;
  options.on_doubt = [this](const Doubt& doubt, const Doubt::Outcome& outcome) { settle(doubt, outcome); };
  options.client.spread = [this](Micros drawn) { return own_turn(drawn, rank(), wall_->now()); };
  return options;
}

std::unique_ptr<FiberWaiter> FleetStore::make_waiter(base::Fibers& fibers) {
  return std::make_unique<FiberWaiter>(options_.target, pipeline_options(), fibers);
}

std::vector<base::RedisHealth> FleetStore::inspect() {
  std::vector<base::RedisHealth> out;
  for (StoreAnswer& answer : background_.commands().run({.words = {"INFO"}, .is_for_all = true}, [this] { wake(); })) {
    base::RedisHealth& one = out.emplace_back();
    if (answer.value) {
      one = base::read_info(answer.value->text);
    } else {
      one.error = std::move(answer.value.error().message);
    }
    one.address = std::move(answer.address);
  }
  return out;
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
      background_.undos().add(
          {.key = std::string(part.key()), .limit = part.limit, .cost = part.cost, .charged_us = doubt.undoes_us()});
    }
    return wake();
  }
  KeyMemory::Asked asked = memory_.begin(this->now());
  asked.is_late = true;
  for (std::size_t i = 0; i < doubt.parts().size(); ++i) {
    const Doubt::Part& part = doubt.parts()[i];
    if (part.cost <= 0) continue;
    const KeyMark mark = memory_.mark_of(part.name);
    if (i < outcome.decisions.size()) {
      memory_.note(mark, part.limit, 0, outcome.decisions[i], outcome.charged_us, asked, i, asked.at,
                   has_share(part.key()));
    }
    if (outcome.is_granted) {
      const Micros until = this->now() + recovery_of(part.limit);
      unsynced_.settle({.name = part.name,
                        .mark = mark,
                        .limit = part.limit,
                        .cost = part.cost,
                        .until = until,
                        .epoch = part.epoch},
                       outcome.is_charged);
    } else if (outcome.is_charged && doubt.what() != What::once) {
      background_.undos().add({.what = doubt.what(),
                               .key = std::string(part.key()),
                               .limit = part.limit,
                               .cost = part.cost,
                               .id = doubt.id(),
                               .charged_us = outcome.charged_us});
    }
  }
  wake();
}

bool FleetStore::is_down() const {
  if (options_.transport) return options_.transport->is_down();
  if (background_.membership().is_barred()) return true;
  if (const FiberWaiter* const waiter = FiberWaiter::here()) return waiter->is_down();
  return thread_->is_down();
}

// Permits were refunded: denials for lack of them are invalidated on every node.
void FleetStore::drop(const Charge& charge) {
  if (fallback_.is_child()) return;
  background_.invalidation().publish(KeyName(charge));
  wake();
}

bool FleetStore::is_cross_slot(std::span<const Charge> charges) const {
  if (options_.target.layout != base::redis::Layout::cluster) return false;
  const std::uint32_t first = redis_tag(subject_of(charges[0].key));
  return std::ranges::any_of(charges, [&](const Charge& one) { return redis_tag(subject_of(one.key)) != first; });
}

Result<Verdict> FleetStore::ask(ScriptRequest& request) {
  if (request.what == What::charge) {
    if (auto denial = known_denial(request.charges, this->now())) {
      counts_.cached.add();
      return *std::move(denial);
    }
  }
  std::optional<Handover::Pending> pending;
  if (handover_.is_on()) pending.emplace(handover_);
  ShareFirst here = decide_by_share_first(request);
  if (here.answer && request.what == What::once && *here.answer && !(*here.answer)->allowed) {
    return CrossSlotRequest(*this, request, {}).ask_whether_repeated(**std::move(here.answer));
  }
  if (here.answer) return *std::move(here.answer);
  if (is_cross_slot(request.charges)) return CrossSlotRequest(*this, request, here.charged).ask();
  return decide_together(request, here);
}

// Decides a request as one event: it has one subject, or one server has all keys.
Result<Verdict> FleetStore::decide_together(ScriptRequest& request, const ShareFirst& here) {
  const What what = request.what;
  const std::span<const Charge> charges = request.charges;
  const ChargedHere& charged = here.charged;
  request.may_split = what == What::charge && charges.size() > 1;
  const bool is_counted = is_charged(what) && !here.is_unsent;
  const KeyMemory::Asked asked = is_counted ? count(charges) : memory_.begin(this->now());
  if (!here.is_unsent) run_carrying(request, asked);
  if (request.state == State::failed && request.is_torn) {
    miss(charges, asked);
    return CrossSlotRequest(*this, request, charged, CrossSlotRequest::By::charge).ask();
  }
  if (request.state == State::failed) refund_share(charges, charged);  // the fallback charges it again, with its id
  auto verdict = finish_commit(request, take(request, asked, this->now()));
  if (request.state != State::failed && !is_newly_admitted(verdict)) refund_share(charges, charged);
  if (!verdict) return verdict;
  if (what == What::reserve && request.state == State::answered && request.ruling == Ruling::repeated) {
    return fail(store::reserved_already());
  }
  for (const Charge& charge : charges) {
    if (charge.limit != nullptr && (charge.cost < 0 || what == What::commit)) drop(charge);
  }
  return verdict;
}

// finish_commit()
//
// The answer to a commit. Redis may have decided the reserve and this node the commit, or the reverse. A reservation
// made without Redis is unsynced, and by now mostly written back. Its unused part is not refunded, because it is
// unknown how much of it Redis had capacity for.
Result<Verdict> FleetStore::finish_commit(const ScriptRequest& request, Result<Verdict> verdict) {
  if (request.what != What::commit) return verdict;
  if (request.state == State::answered && request.ruling == Ruling::missing) {
    return fallback_.answer(request, this->now());
  }
  if (request.state == State::failed && !verdict && verdict.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::unavailable, "Redis is unavailable, so the reservation is not settled; try again");
  }
  return verdict;
}

Result<Ruling> FleetStore::decide_all(const Request& asked, std::span<Decision> decisions,
                                      std::span<std::int64_t> reserved) {
  const std::size_t count = asked.charges.size();
  ScriptRequest request{.what = what_of(asked),
                        .charges = asked.charges,
                        .id = asked.id,
                        .lasts = asked.lasts,
                        .decisions = decisions.first(count),
                        .reserved = reserved.first(reserved.empty() ? 0 : count)};
  const auto verdict = ask(request);
  if (!verdict) return fail(verdict.error());
  std::ranges::copy(verdict->decisions, decisions.begin());
  if (!reserved.empty()) std::ranges::copy(verdict->reserved, reserved.begin());
  if (verdict->repeated) return Ruling::repeated;
  const bool allowed = verdict->allowed || request.what == What::overdraw || request.what == What::commit;
  return allowed ? Ruling::allowed : Ruling::denied;
}

Result<Decision> FleetStore::preview(const Charge& charge, std::int64_t) {
  Decision decision;
  ScriptRequest request{.what = What::look, .charges = {&charge, 1}, .decisions = {&decision, 1}};
  auto verdict = ask(request);
  if (!verdict) return fail(std::move(verdict.error()));
  Decision& seen = verdict->decisions[0];
  if (seen.decided_by != DecidedBy::closed || charge.cost <= 0) return seen;
  // Answer as a check would be answered, although a check reads no counts then.
  seen.allowed = false;
  seen.remaining = 0;
  seen.retry_after = seen.reset_after = Micros{1'000'000};
  return seen;
}

Result<Decision> FleetStore::acquire(const Charge& charge, std::string_view id, std::int64_t) {
  Decision decision;
  ScriptRequest request{.what = What::acquire, .charges = {&charge, 1}, .id = id, .decisions = {&decision, 1}};
  auto verdict = ask(request);
  if (!verdict) return fail(std::move(verdict.error()));
  return verdict->decisions[0];
}

// This node first: the permit may be on its way to Redis right now.
Result<bool> FleetStore::release(std::string_view key, std::string_view id, std::int64_t) {
  const auto here = fallback_.release(key, id);
  const Charge charge{.key = key};
  Decision decision;
  ScriptRequest request{.what = What::release, .charges = {&charge, 1}, .id = id, .decisions = {&decision, 1}};
  run({&request, 1});
  if (request.state == State::refused) return request.refusal();
  if (request.state == State::failed && !(here && *here)) {
    return fail(ErrorCode::unavailable, "Redis is unavailable, so the permits are not released; try again");
  }
  return (request.state == State::answered && request.ruling == Ruling::allowed) || (here && *here);
}

Result<bool> FleetStore::reset(std::string_view key, std::int64_t) {
  const Charge charge{.key = key};
  Decision decision;
  ScriptRequest request{.what = What::forget, .charges = {&charge, 1}, .decisions = {&decision, 1}};
  run({&request, 1});
  if (request.state == State::refused) return request.refusal();
  if (request.state == State::failed) {
    return fail(ErrorCode::unavailable, "Redis is unavailable, so the key is not reset; try again");
  }
  for (const Algorithm algorithm : kAlgorithms) {
    const KeyName name(algorithm, key);
    background_.invalidation().publish(name);
    unsynced_.forget(memory_.mark_of(name));
  }
  wake();
  const auto here = fallback_.forget(key);
  return request.ruling == Ruling::allowed || (here && *here);
}

}  // namespace weir::fleet
