// Batches questions into calls. See lane.h.
#include "fleet/lane.h"

#include <algorithm>
#include <utility>

#include "base/random_id.h"
#include "fleet/key_name.h"
#include "fleet/redis_key.h"
#include "fleet/redis_script.h"

namespace weir {

using What = ScriptRequest::What;

namespace {

constexpr char kProbeMark = '!';
constexpr std::uint64_t kProbes = std::uint64_t{1} << 32;  // tags from here on are probes; below are calls
constexpr Micros kRetryMin{500};                           // a question with less time left is not sent
constexpr Micros kPatienceMax{3'000};           // how long a call may exceed the earliest deadline of its questions
constexpr std::int64_t kCall = kScriptKeysMax;  // questions of a full call, if all keys are different
constexpr std::int64_t kCallOfCluster = kCall / 8;
constexpr std::int64_t kLearnNothing = 1;  // a deadline long past: the script only returns the time

redis::ClientOptions with_events(redis::ClientOptions options, bool& has_connected, std::vector<std::uint64_t>& lost,
                                 std::string& why) {
  options.on_event = [told = std::move(options.on_event), &has_connected, &lost, &why](const redis::Event& event) {
    if (event.kind == redis::Event::Kind::connected) has_connected = true;
    if (event.kind == redis::Event::Kind::lost) {
      why = event.text;
      if (event.node != 0) lost.push_back(event.node);
    }
    if (told) told(event);
  };
  return options;
}

// Whether the fault is the server's, not the question's.
bool is_of_server(redis::FaultKind kind) {
  using enum redis::FaultKind;
  return kind != error && kind != wrong_type && kind != too_many_in_flight && kind != try_again;
}

// Whether a question may follow this one in the same call.
bool can_join(const Ask& before, const Ask& ask) {
  return !before.is_alone && !ask.is_alone && before.is_retried == ask.is_retried;
}

// Whether a tied pair fits: a write-back with its ticket, and the question after it. If the pair does not fit even an
// empty call, the write-back is sent first, alone.
bool has_room_for_pair(const ScriptCall& call, const std::deque<Ask*>& waiting) {
  const std::size_t after = waiting.size() > 1 ? waiting[1]->charges.size() : 0;
  return call.keys() + waiting[0]->charges.size() + 1 + after <= kScriptKeysMax;
}

// The first write-back of a call names the ticket. One that was sent before and refused may now share another call.
void share_ticket(Ask& ask, const Ask*& leader) {
  if (leader == nullptr) {
    leader = &ask;
    ask.shared = {.id = std::make_shared<const std::string>(ask.own_id), .place = 0};
  } else {
    ask.shared = {.id = leader->shared.id, .place = 0};
  }
  ask.request.id = *ask.shared.id;
  ask.request.ticket_subject = subject_of(leader->charges[0].key);
}

void count_sharers(std::span<Ask* const> asks) {
  std::uint16_t count = 0;
  for (Ask* const ask : asks) {
    if (ask->is_tied && ask->shared.id) ask->shared.place = count++;
  }
  for (Ask* const ask : asks) ask->shared.count = count;
}

std::uint64_t some_seed() {
  std::uint64_t seed = 0;
  for (const char c : random_id()) seed = seed * 131 + static_cast<unsigned char>(c);
  return seed;
}

}  // namespace

Lane::Lane(const redis::Target& target, LaneOptions options)
    : options_(std::move(options)),
      is_cluster_(target.layout == redis::Layout::cluster),
      client_(target, with_events(options_.client, has_connected_, lost_, lost_why_)),
      script_(client_.add_script(std::string(redis_script()))) {
  client_.connect();
}

Lane::~Lane() {
  close();
  has_left_ = true;
  const auto open = std::ranges::count_if(servers_, [](const auto& one) { return one.second.breaker.is_open(); });
  if (options_.totals) options_.totals->leave(static_cast<int>(open));
  tell();
}

void Lane::tell() {
  if (options_.totals == nullptr) return;
  counts_.connects = client_.counters().connects;
  options_.totals->add(counts_, told_);
}

void Lane::close() {
  is_closed_ = true;
  for (auto& [slot, place] : places_) {
    while (!place.waiting.empty()) {
      Ask& ask = *place.waiting.front();
      place.waiting.pop_front();
      finish(ask, Ask::State::failed);
    }
  }
  for (const std::unique_ptr<Call>& call : calls_) {
    if (call->is_given_up) continue;
    for (Ask* const ask : std::exchange(call->asks, {})) finish(*ask, Ask::State::failed);
  }
}

Ask& Lane::make() {
  if (free_asks_.empty()) {
    asks_.push_back(std::make_unique<Ask>());
    return *asks_.back();
  }
  Ask& ask = *free_asks_.back();
  free_asks_.pop_back();
  return ask;
}

void Lane::give(Ask& ask) {
  ask.doubt.reset();
  free_asks_.push_back(&ask);
}

int Lane::slot_of(std::string_view subject) const {
  if (!is_cluster_) return -1;
  std::string head;
  append_redis_head(head, kTicketMark, redis_tag(subject));
  return redis::slot_of(head);
}

std::uint64_t Lane::server_of(int slot) const { return is_cluster_ ? client_.owner_of(slot) : 0; }

Lane::Server& Lane::server(std::uint64_t number) {
  const auto known = servers_.find(number);
  if (known != servers_.end()) return known->second;
  return servers_.emplace(number, Server{.breaker = Breaker(options_.breaker, some_seed())}).first->second;
}

bool Lane::is_open(int slot) const {
  const auto known = servers_.find(server_of(slot));
  return known != servers_.end() && known->second.breaker.is_open();
}

bool Lane::is_any_open() const {
  return std::ranges::any_of(servers_, [](const auto& one) { return one.second.breaker.is_open(); });
}

void Lane::blame(std::string_view why) {
  if (options_.totals != nullptr && !is_closed_) options_.totals->blame(why, now_);
}

template <class Change>
void Lane::change(std::uint64_t number, Change change, std::string_view why) {
  Server& server = this->server(number);
  const bool was_open = server.breaker.is_open();
  change(server.breaker);
  const bool is_open = server.breaker.is_open();
  if (was_open == is_open) return;
  if (is_open) hand_over(number);
  is_away_.store(is_open && !is_cluster_, std::memory_order_relaxed);
  counts_.breaker_openings += is_open ? 1 : 0;
  if (options_.totals && !has_left_) options_.totals->open(is_open ? 1 : -1, why, now_);
}

// From now on this node's share also decides for the keys of this server.
void Lane::hand_over(std::uint64_t number) {
  if (options_.handover == nullptr || is_closed_) return;
  if (!is_cluster_) return options_.handover->begin();
  for (int slot = 0; slot < redis::kSlots; ++slot) {
    if (client_.owner_of(slot) == number) options_.handover->begin(slot);
  }
}

// A server that was never asked has no entry: its breaker is closed, and nothing waits for it.
bool Lane::is_too_much(std::uint64_t server) const {
  const auto known = servers_.find(server);
  return under_way_ >= options_.asks_max || (known != servers_.end() && is_overloaded(known->second));
}

bool Lane::would_fail(int slot) const { return is_closed_ || is_too_much(server_of(slot)) || is_open(slot); }

void Lane::count_failed(int slot) {
  ++counts_.asks;
  ++counts_.failed;
  if (is_too_much(server_of(slot))) ++counts_.unsent;
}

bool Lane::submit(Ask& ask, Asker& asker, Micros now) {
  now_ = std::max(now_, now);
  ask.asker = &asker;
  ask.slot = slot_of(subject_of(ask.charges[0].key));
  ask.server = server_of(ask.slot);
  if (would_fail(ask.slot)) {
    count_failed(ask.slot);
    ask.state = Ask::State::failed;
    return false;
  }
  ++counts_.asks;
  ask.deadline = now_ + options_.deadline;
  ++under_way_;
  ++server(ask.server).asks;
  enqueue(ask);
  return true;
}

void Lane::enqueue(Ask& ask) {
  Place& place = places_[ask.slot];
  place.waiting.push_back(&ask);
  if (!std::exchange(place.is_ready, true)) ready_.push_back(ask.slot);
}

void Lane::finish(Ask& ask, Ask::State state) {
  --under_way_;
  --server(ask.server).asks;
  ask.state = state;
  ++(state == Ask::State::answered ? counts_.answered : state == Ask::State::failed ? counts_.failed : counts_.refused);
  ask.asker->on_done(ask);
}

Micros Lane::due() const {
  Micros first = client_.due();
  for (const int slot : ready_) {
    const Place& place = places_.at(slot);
    if (!place.waiting.empty()) first = std::min(first, place.waiting.front()->deadline);
  }
  for (const auto& [number, server] : servers_) {
    if (server.breaker.is_open()) first = std::min(first, server.breaker.probe_at());
  }
  return first;
}

void Lane::flush(Micros now, bool more_comes) {
  now_ = std::max(now_, now);
  const std::vector<int> ready = std::exchange(ready_, {});
  for (const int slot : ready) {
    Place& place = places_[slot];
    place.is_ready = false;
    send_from(place, slot, more_comes);
    if (place.waiting.empty() || std::exchange(place.is_ready, true)) continue;
    ready_.push_back(slot);
  }
  client_.flush(now_);
}

// A full call need not wait for more questions.
void Lane::send_full() {
  for (const int slot : ready_) {
    Place& place = places_[slot];
    if (place.calls < options_.calls_max && place.waiting.size() >= kScriptKeysMax) send_from(place, slot, true);
  }
  client_.flush(now_);
}

// Sends as many calls as may be in flight. The rest waits for the next reply. A large batch goes in two halves: Redis
// executes one while we parse the other's reply. With `more_comes`, the next flush sends the other half.
void Lane::send_from(Place& place, int slot, bool more_comes) {
  // A question with too little time would make the whole call too late. And behind an open breaker questions fail at
  // once.
  expire(place, is_open(slot) ? Micros::max() : now_ + kRetryMin);
  while (!place.waiting.empty() && place.calls < options_.calls_max) {
    if (free_calls_.empty()) {
      free_calls_.push_back(calls_.size());
      calls_.push_back(std::make_unique<Call>(options_.prefix));
    }
    const std::size_t number = free_calls_.back();
    free_calls_.pop_back();
    Call& call = *calls_[number];
    call.script.clear();
    call.asks.clear();
    call.is_given_up = false;
    call.slot = slot;
    call.sent = now_;
    Micros first = Micros::max(), last{0};
    const bool is_halved = !more_comes && place.calls == 0 && place.waiting.size() >= kHalvedMin;
    const std::size_t most = is_halved ? place.waiting.size() / 2 : place.waiting.size();
    const Ask* leader = nullptr;  // the first write-back of this call
    while (call.asks.size() < most || (!place.waiting.empty() && call.asks.back()->is_tied)) {
      Ask& ask = *place.waiting.front();
      if (!call.asks.empty() && !can_join(*call.asks.back(), ask)) break;
      if (ask.is_tied && !call.asks.empty() && !has_room_for_pair(call.script, place.waiting)) break;
      if (ask.is_tied && !is_cluster_) share_ticket(ask, leader);
      if (!call.script.add(ask.request)) break;
      place.waiting.pop_front();
      call.asks.push_back(&ask);
      first = std::min(first, ask.deadline);
      last = std::max(last, ask.deadline);
    }
    count_sharers(call.asks);
    ++place.calls;
    ++counts_.calls;
    Server& to = server(server_of(slot));
    to.tag = redis_tag(subject_of(call.asks[0]->charges[0].key));
    const std::int64_t deadline = to.has_offset ? first.count() + to.offset_us : kLearnNothing;
    const auto words = call.script.words(deadline, to.has_offset ? now_.count() + to.offset_us : 0);
    client_.send({.words = words,
                  .script = script_,
                  .slot = is_cluster_ ? slot : redis::kAnySlot,
                  .deadline = std::min(last, first + kPatienceMax),
                  .reading = redis::Reading::integers,
                  .wants_late = true,
                  .is_retried = call.asks.size() == 1},
                 {this, number});
  }
}

void Lane::turn(Micros now) {
  now_ = std::max(now_, now);
  client_.turn(now_);
  if (!lost_why_.empty()) blame(lost_why_);
  // Without a connection, questions fail without waiting for a timeout. The other servers of a cluster may be fine.
  for (const std::uint64_t node : std::exchange(lost_, {})) {
    if (is_cluster_ && !servers_.contains(node)) continue;  // it was never asked, so we have no key to probe it by
    change(
        is_cluster_ ? node : 0, [&](Breaker& breaker) { breaker.open(now_); }, lost_why_);
  }
  lost_why_.clear();
  send_full();
  for (const int slot : ready_) expire(places_[slot], now_);
  probe();
  tell();
}

// Fails the questions that were not even sent and whose deadline is at most `until`.
void Lane::expire(Place& place, Micros until) {
  while (!place.waiting.empty() && place.waiting.front()->deadline <= until) {
    Ask& ask = *place.waiting.front();
    place.waiting.pop_front();
    ++counts_.timeouts;
    finish(ask, Ask::State::failed);
  }
}

// The probe is a small write: a read-only server is no help.
void Lane::probe() {
  const bool is_new = std::exchange(has_connected_, false);
  for (auto& [number, server] : servers_) {
    if (!server.breaker.is_open()) continue;
    if (is_new) server.breaker.hurry(now_);
    if (!server.breaker.lets_through(now_)) continue;
    std::string key = options_.prefix;
    append_redis_head(key, kProbeMark, server.tag);
    const std::array<std::string_view, 5> words = {"SET", key, "1", "PX", "1000"};
    client_.send({.words = words,
                  .slot = is_cluster_ ? redis::slot_of(key) : redis::kAnySlot,
                  .deadline = now_ + options_.deadline},
                 {this, kProbes + number});
  }
  client_.flush(now_);
}

void Lane::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  if (tag >= kProbes) return on_probe(tag - kProbes, reply);
  Call& call = *calls_[tag];
  Place& place = places_[call.slot];
  --place.calls;
  if (!place.waiting.empty() && !std::exchange(place.is_ready, true)) ready_.push_back(call.slot);
  if (reply.is_ok()) {
    read(call, reply);
  } else {
    fail(call, *reply.fault);
  }
  if (!call.is_given_up) free_calls_.push_back(tag);
}

// A reply that arrived after its askers gave up, or the end of its connection.
void Lane::on_late(std::uint64_t tag, const redis::Reply& reply) {
  Call& call = *calls_[tag];
  bool is_done = false, is_refused = false;
  if (reply.is_ok() && reply.value == nullptr) {
    const auto read = call.script.read(reply.integers);
    is_done = read && *read == ScriptCall::Read::answered;
    is_refused = read && *read == ScriptCall::Read::late;
  }
  for (Ask* const ask : std::exchange(call.asks, {})) {
    const bool is_charged = is_done && ask->request.ruling == ScriptRequest::Ruling::allowed;
    if (ask->doubt) {
      ask->doubt->resolve(is_charged, call.script.now_us(), is_done ? ask->decisions : std::vector<Decision>{},
                          is_refused);
    }
    give(*ask);
  }
  call.is_given_up = false;
  free_calls_.push_back(tag);
}

// The asker gets another ask, which has failed. This ask waits for the outcome of its call.
void Lane::give_up(Ask& ask) {
  const What what = ask.request.what;
  if (what == What::charge || what == What::once || what == What::reserve || what == What::overdraw ||
      what == What::undo) {
    std::vector<Doubt::Part> parts;
    for (const Charge& charge : ask.charges) {
      parts.push_back({std::string(std::string_view(KeyName(charge))), *charge.limit, charge.cost});
    }
    ask.doubt = std::make_shared<Doubt>(what, std::move(parts), std::string(ask.request.id), options_.on_doubt,
                                        ask.request.charged_us);
  }
  Ask& told = make();
  told.fill(what, {});
  told.decisions.assign(ask.decisions.size(), {});
  told.reserved.assign(ask.reserved.size(), 0);
  told.slot = ask.slot;
  told.server = ask.server;
  told.asker = ask.asker;
  told.mark = ask.mark;
  told.is_in_doubt = true;
  told.doubt = ask.doubt;
  told.shared = ask.shared;
  finish(told, Ask::State::failed);
}

void Lane::on_probe(std::uint64_t number, const redis::Reply& reply) {
  if (!reply.is_ok()) blame(reply.fault->text);
  change(number, [&](Breaker& breaker) {
    if (reply.is_ok()) {
      breaker.succeed(now_);
    } else {
      breaker.fail(now_);
    }
  });
}

// learn()
//
// Learns two things from a reply. First the server's time: the moment that the reply names lies between sending and
// now. Then the server's speed, by sums that lose a quarter with every call. A call that was not full says little
// about how long a full one takes. So it counts as full, until there are enough questions to fill calls. In a cluster
// they seldom are.
void Lane::learn(Server& server, const Call& call) {
  server.offset_us = call.script.now_us() - (call.sent.count() + now_.count()) / 2;
  server.has_offset = true;
  const Micros busy = now_ - std::max(call.sent, std::exchange(server.heard_at, now_));
  server.busy_us = server.busy_us * 3 / 4 + busy.count();
  const auto asks = static_cast<std::int64_t>(call.asks.size());
  server.answers = server.answers * 3 / 4 + std::max(asks, is_cluster_ ? kCallOfCluster : kCall);
}

// Whether the waiting questions would take the server half of a question's deadline. One full call may always wait.
bool Lane::is_overloaded(const Server& server) const {
  const auto asks = static_cast<std::int64_t>(server.asks);
  return asks >= kCall && asks * server.busy_us > server.answers * (options_.deadline.count() / 2);
}

void Lane::read(Call& call, const redis::Reply& reply) {
  Server& from = server(server_of(call.slot));
  const auto read = call.script.read(reply.integers);
  if (!read) {
    for (Ask* const ask : std::exchange(call.asks, {})) {
      ask->error = read.error().message;
      finish(*ask, Ask::State::refused);
    }
    return;
  }
  learn(from, call);
  change(server_of(call.slot), [&](Breaker& breaker) { breaker.succeed(now_); });
  const bool is_late = *read == ScriptCall::Read::late;
  if (is_late) ++counts_.late;
  if (is_late) return retry(std::exchange(call.asks, {}));
  for (Ask* const ask : std::exchange(call.asks, {})) {
    if (ask->request.ruling == ScriptRequest::Ruling::no_state) {
      ask->error = "the value of this key in Redis is not a limit state of this version; delete the key";
      finish(*ask, Ask::State::refused);
    } else {
      ask->decided_us = call.script.now_us();
      finish(*ask, Ask::State::answered);
    }
  }
}

// A question is retried once, if there is time: the refusal has taught us the server's time.
bool Lane::may_retry(Ask& ask) {
  return !std::exchange(ask.is_retried, true) && ask.deadline - now_ >= kRetryMin && !is_closed_;
}

// Retried questions go before newer ones: they have less time. A call is as urgent as its first question, so they
// share no call with others.
void Lane::retry(std::span<Ask* const> asks) {
  Place& place = places_[asks[0]->slot];
  for (std::size_t i = asks.size(); i-- > 0;) {
    if (may_retry(*asks[i])) {
      place.waiting.push_front(asks[i]);
      if (!std::exchange(place.is_ready, true)) ready_.push_back(asks[i]->slot);
    } else {
      ++counts_.timeouts;
      finish(*asks[i], Ask::State::failed);
    }
  }
}

// While a slot migrates, the server refuses a call with several keys of it (TRYAGAIN), but not a call with one key.
void Lane::fail(Call& call, const redis::Fault& fault) {
  const bool is_between = fault.kind == redis::FaultKind::try_again && call.asks.size() == 1;
  const bool is_unsent = fault.kind == redis::FaultKind::too_many_in_flight;
  if (!is_of_server(fault.kind) && !is_unsent && !is_between) return part(call, fault);
  if (is_of_server(fault.kind)) {
    blame(fault.text);
    const bool is_cut_off = fault.kind == redis::FaultKind::disconnected && !fault.was_sent;
    change(
        server_of(call.slot), [&](Breaker& breaker) { is_cut_off ? breaker.open(now_) : breaker.fail(now_); },
        fault.text);
  }
  call.is_given_up = fault.has_late;
  const std::vector<Ask*> asks = call.is_given_up ? call.asks : std::exchange(call.asks, {});
  for (Ask* const ask : asks) {
    ++(is_unsent ? counts_.unsent : counts_.timeouts);
    if (call.is_given_up) {
      give_up(*ask);
      continue;
    }
    ask->is_in_doubt = fault.was_sent;
    finish(*ask, Ask::State::failed);
  }
}

// The server has refused a call. Sending each question alone finds the one to blame. A question that is tied to the
// write-back before it must not be decided without that write-back. A write-back has two keys, so it cannot be
// executed while its slot migrates, and both have failed.
void Lane::part(Call& call, const redis::Fault& fault) {
  const bool is_one = call.asks.size() == 1;
  bool was_tied = false;
  for (Ask* const ask : std::exchange(call.asks, {})) {
    const bool is_bound = std::exchange(was_tied, ask->is_tied) || ask->is_tied;
    if (is_one || is_closed_) {
      ask->error = fault.text;
      finish(*ask, Ask::State::refused);
    } else if (is_bound && fault.kind == redis::FaultKind::try_again) {
      ++counts_.timeouts;
      finish(*ask, Ask::State::failed);
    } else {
      ask->is_alone = true;
      enqueue(*ask);
    }
  }
}

}  // namespace weir
