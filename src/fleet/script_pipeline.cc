// Batches requests into calls. See script_pipeline.h.
#include "fleet/script_pipeline.h"

#include <algorithm>
#include <utility>

#include "fleet/key_name.h"
#include "fleet/redis_key.h"
#include "fleet/redis_script.h"

namespace weir::fleet {

namespace {

constexpr char kProbeMark = '!';
constexpr std::uint64_t kProbes = std::uint64_t{1} << 32;  // tags from here on are probes; below are calls
constexpr Micros kRetryMin{500};                           // a request with less time left is not sent
constexpr Micros kOverrunMax{3'000};            // how long a call may exceed the earliest deadline of its requests
constexpr std::int64_t kCall = kScriptKeysMax;  // requests of a full call, if all keys are different
constexpr std::int64_t kCallOfCluster = kCall / 8;
constexpr std::int64_t kLearnNothing = 1;  // a deadline long past: the script only returns the time

redis::ClientOptions with_events(redis::ClientOptions options, bool& has_connected, std::vector<std::uint64_t>& lost,
                                 std::string& why) {
  options.on_event = [on_event = std::move(options.on_event), &has_connected, &lost, &why](const redis::Event& event) {
    if (event.kind == redis::Event::Kind::connected) has_connected = true;
    if (event.kind == redis::Event::Kind::lost) {
      why = event.text;
      if (event.node != 0) lost.push_back(event.node);
    }
    if (on_event) on_event(event);
  };
  return options;
}

// Whether the fault is the server's, not the request's.
bool is_of_server(redis::FaultKind kind) {
  using enum redis::FaultKind;
  return kind != error && kind != wrong_type && kind != too_many_in_flight && kind != try_again;
}

// Whether a request may follow this one in the same call.
bool can_join(const ScriptRequest& before, const ScriptRequest& request) {
  return !before.is_alone && !request.is_alone && before.is_retried == request.is_retried;
}

// Whether a tied pair fits: a write-back with its ticket, and the request after it. If the pair does not fit even an
// empty call, the write-back is sent first, alone.
bool has_room_for_pair(const ScriptCall& call, const std::deque<ScriptRequest*>& waiting) {
  const std::size_t after = waiting.size() > 1 ? waiting[1]->charges.size() : 0;
  return call.keys() + waiting[0]->charges.size() + 1 + after <= kScriptKeysMax;
}

// The first write-back of a call names the ticket. One that was sent before and refused may now share another call.
void share_ticket(ScriptRequest& request, const ScriptRequest*& leader) {
  if (leader == nullptr) {
    leader = &request;
    request.shared = {.id = std::make_shared<const std::string>(request.id), .place = 0};
  } else {
    request.shared = {.id = leader->shared.id, .place = 0};
  }
  request.ticket_subject = subject_of(leader->charges[0].key);
}

void count_sharers(std::span<ScriptRequest* const> requests) {
  std::uint16_t count = 0;
  for (ScriptRequest* const request : requests) {
    if (request->is_tied && request->shared.id) request->shared.place = count++;
  }
  for (ScriptRequest* const request : requests) request->shared.count = count;
}

}  // namespace

ScriptPipeline::ScriptPipeline(const base::redis::Target& target, PipelineOptions options)
    : options_(std::move(options)),
      is_cluster_(target.layout == base::redis::Layout::cluster),
      client_(target, with_events(options_.client, has_connected_, lost_, lost_why_)),
      script_(client_.add_script(std::string(redis_script()))) {
  client_.connect();
}

ScriptPipeline::~ScriptPipeline() {
  close();
  has_left_ = true;
  const auto open = std::ranges::count_if(servers_, [](const auto& one) { return one.second.breaker.is_open(); });
  if (options_.totals) options_.totals->leave(static_cast<int>(open));
  report_counts();
}

void ScriptPipeline::report_counts() {
  if (options_.totals == nullptr) return;
  counts_.connects = client_.counters().connects;
  options_.totals->add(counts_, reported_);
}

void ScriptPipeline::close() {
  is_closed_ = true;
  for (auto& [slot, place] : places_) {
    while (!place.waiting.empty()) {
      ScriptRequest& request = *place.waiting.front();
      place.waiting.pop_front();
      finish(request, State::failed);
    }
  }
  for (const std::unique_ptr<Call>& call : calls_) {
    if (call->is_given_up) continue;
    call->script.clear();  // a reply that comes after this finds no request
    for (ScriptRequest* const request : std::exchange(call->requests, {})) finish(*request, State::failed);
  }
  WEIR_ASSERT(in_flight_ == 0);
}

int ScriptPipeline::slot_of(std::string_view subject) const {
  if (!is_cluster_) return -1;
  std::string head;
  append_redis_head(head, kTicketMark, redis_tag(subject));
  return redis::slot_of(head);
}

std::uint64_t ScriptPipeline::server_of(int slot) const { return is_cluster_ ? client_.owner_of(slot) : 0; }

ScriptPipeline::Server& ScriptPipeline::server(std::uint64_t number) {
  const auto known = servers_.find(number);
  if (known != servers_.end()) return known->second;
  return servers_.emplace(number, Server{.breaker = Breaker(options_.breaker)}).first->second;
}

bool ScriptPipeline::is_open(int slot) const {
  const auto known = servers_.find(server_of(slot));
  return known != servers_.end() && known->second.breaker.is_open();
}

bool ScriptPipeline::is_any_open() const {
  return std::ranges::any_of(servers_, [](const auto& one) { return one.second.breaker.is_open(); });
}

void ScriptPipeline::record_fault(std::string_view why) {
  if (options_.totals != nullptr && !is_closed_) options_.totals->record_fault(why, now_);
}

template <class Change>
void ScriptPipeline::change(std::uint64_t number, Change change, std::string_view why) {
  Server& server = this->server(number);
  const bool was_open = server.breaker.is_open();
  change(server.breaker);
  const bool is_open = server.breaker.is_open();
  if (was_open == is_open) return;
  if (is_open) hand_over(number);
  is_down_.store(is_open && !is_cluster_, std::memory_order_relaxed);
  counts_.breaker_openings += is_open ? 1 : 0;
  if (options_.totals && !has_left_) options_.totals->open(is_open ? 1 : -1, why, now_);
}

// From now on this node's share also decides for the keys of this server.
void ScriptPipeline::hand_over(std::uint64_t number) {
  if (options_.handover == nullptr || is_closed_) return;
  if (!is_cluster_) return options_.handover->begin();
  for (int slot = 0; slot < redis::kSlots; ++slot) {
    if (client_.owner_of(slot) == number) options_.handover->begin(slot);
  }
}

// A server that was never asked has no entry: its breaker is closed, and nothing waits for it.
bool ScriptPipeline::is_too_much(std::uint64_t server) const {
  const auto known = servers_.find(server);
  return in_flight_ >= options_.requests_max || (known != servers_.end() && is_overloaded(known->second));
}

bool ScriptPipeline::would_fail(int slot) const { return is_closed_ || is_too_much(server_of(slot)) || is_open(slot); }

void ScriptPipeline::count_failed(int slot) {
  ++counts_.requests;
  ++counts_.failed;
  if (is_too_much(server_of(slot))) ++counts_.unsent;
}

bool ScriptPipeline::submit(ScriptRequest& request, Requester& requester, Micros now) {
  WEIR_ASSERT(!request.charges.empty());
  now_ = std::max(now_, now);
  request.requester = &requester;
  request.is_retried = request.is_alone = request.is_torn = false;
  request.slot = slot_of(subject_of(request.charges[0].key));
  request.server = server_of(request.slot);
  if (would_fail(request.slot)) {
    count_failed(request.slot);
    request.state = State::failed;
    return false;
  }
  request.deadline = now_ + options_.deadline;
  Server& server = this->server(request.server);
  enqueue(request);  // may find no memory, before anything is counted
  ++counts_.requests;
  ++in_flight_;
  ++server.requests;
  return true;
}

void ScriptPipeline::enqueue(ScriptRequest& request) {
  Place& place = places_[request.slot];
  if (!place.is_ready) ready_.push_back(request.slot);
  place.is_ready = true;
  place.waiting.push_back(&request);
}

void ScriptPipeline::finish(ScriptRequest& request, State state) {
  Server& server = this->server(request.server);
  WEIR_ASSERT(in_flight_ > 0 && server.requests > 0);
  --in_flight_;
  --server.requests;
  request.state = state;
  ++(state == State::answered ? counts_.answered : state == State::failed ? counts_.failed : counts_.refused);
  request.requester->on_done(request);
}

Micros ScriptPipeline::due() const {
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

void ScriptPipeline::flush(Micros now, bool more_comes) {
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

// A full call need not wait for more requests.
void ScriptPipeline::send_full() {
  for (const int slot : ready_) {
    Place& place = places_[slot];
    if (place.calls < options_.calls_max && place.waiting.size() >= kScriptKeysMax) send_from(place, slot, true);
  }
  client_.flush(now_);
}

// Sends as many calls as may be in flight. The rest waits for the next reply. A large batch goes in two halves: Redis
// executes one while we parse the other's reply. With `more_comes`, the next flush sends the other half.
void ScriptPipeline::send_from(Place& place, int slot, bool more_comes) {
  // A request with too little time would make the whole call too late. And behind an open breaker requests fail at
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
    call.requests.clear();
    call.is_given_up = false;
    call.slot = slot;
    call.sent = now_;
    Micros first = Micros::max(), last{0};
    const bool is_halved = !more_comes && place.calls == 0 && place.waiting.size() >= kHalvedMin;
    const std::size_t most = is_halved ? place.waiting.size() / 2 : place.waiting.size();
    const ScriptRequest* leader = nullptr;  // the first write-back of this call
    while (call.requests.size() < most || (!place.waiting.empty() && call.requests.back()->is_tied)) {
      ScriptRequest& request = *place.waiting.front();
      if (!call.requests.empty() && !can_join(*call.requests.back(), request)) break;
      if (request.is_tied && !call.requests.empty() && !has_room_for_pair(call.script, place.waiting)) break;
      if (request.is_tied && !is_cluster_) share_ticket(request, leader);
      if (!call.script.add(request)) break;
      place.waiting.pop_front();
      call.requests.push_back(&request);
      first = std::min(first, request.deadline);
      last = std::max(last, request.deadline);
    }
    WEIR_ASSERT(!call.requests.empty());
    count_sharers(call.requests);
    ++place.calls;
    ++counts_.calls;
    Server& to = server(server_of(slot));
    to.tag = redis_tag(subject_of(call.requests[0]->charges[0].key));
    const std::int64_t deadline = to.has_offset ? first.count() + to.offset_us : kLearnNothing;
    const auto words = call.script.words(deadline, to.has_offset ? now_.count() + to.offset_us : 0);
    client_.send({.words = words,
                  .script = script_,
                  .slot = is_cluster_ ? slot : redis::kAnySlot,
                  .deadline = std::min(last, first + kOverrunMax),
                  .reading = redis::Reading::integers,
                  .wants_late = true,
                  .is_retried = call.requests.size() == 1 && !call.requests[0]->may_split},
                 {this, number});
  }
}

void ScriptPipeline::turn(Micros now) {
  now_ = std::max(now_, now);
  client_.turn(now_);
  if (!lost_why_.empty()) record_fault(lost_why_);
  // Without a connection, requests fail without waiting for a timeout. The other servers of a cluster may be fine.
  for (const std::uint64_t node : std::exchange(lost_, {})) {
    if (is_cluster_ && !servers_.contains(node)) continue;  // it was never asked, so we have no key to probe it by
    change(
        is_cluster_ ? node : 0, [&](Breaker& breaker) { breaker.open(now_); }, lost_why_);
  }
  lost_why_.clear();
  send_full();
  for (const int slot : ready_) expire(places_[slot], now_);
  probe();
  report_counts();
}

// Fails the requests that were not even sent and whose deadline is at most `until`.
void ScriptPipeline::expire(Place& place, Micros until) {
  while (!place.waiting.empty() && place.waiting.front()->deadline <= until) {
    ScriptRequest& request = *place.waiting.front();
    place.waiting.pop_front();
    ++counts_.timeouts;
    finish(request, State::failed);
  }
}

// The probe is a small write: a read-only server is no help.
void ScriptPipeline::probe() {
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

void ScriptPipeline::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  if (tag >= kProbes) return on_probe(tag - kProbes, reply);
  Call& call = *calls_[tag];
  Place& place = places_[call.slot];
  WEIR_ASSERT(place.calls > 0 && !call.is_given_up);
  --place.calls;
  if (!place.waiting.empty() && !std::exchange(place.is_ready, true)) ready_.push_back(call.slot);
  if (reply.is_ok()) {
    read(call, reply);
  } else {
    fail(call, *reply.fault);
  }
  if (!call.is_given_up) free_calls_.push_back(tag);
}

// A reply that arrived after its requests have failed, or the end of its connection.
void ScriptPipeline::on_late(std::uint64_t tag, const redis::Reply& reply) {
  Call& call = *calls_[tag];
  WEIR_ASSERT(call.is_given_up);
  bool is_done = false, is_refused = false;
  if (reply.is_ok() && reply.value == nullptr) {
    const auto read = call.script.read(reply.integers);
    is_done = read && *read == ScriptCall::Read::answered;
    is_refused = read && *read == ScriptCall::Read::late;
  }
  for (const std::unique_ptr<KeptRequest>& request : std::exchange(call.late, {})) {
    if (!request->doubt) continue;
    std::vector<Decision> decisions;
    if (is_done) decisions.assign(request->decisions.begin(), request->decisions.end());
    const bool is_charged = is_done && request->ruling == Ruling::allowed;
    request->doubt->resolve(is_charged, call.script.now_us(), std::move(decisions), is_refused);
  }
  call.is_given_up = false;
  free_calls_.push_back(tag);
}

// The requests of the call fail. Copies of them wait for its outcome.
void ScriptPipeline::give_up(Call& call) {
  const std::vector<ScriptRequest*> requests = std::exchange(call.requests, {});
  std::vector<ScriptRequest*> copies;
  for (ScriptRequest* const request : requests) {
    const What what = request->what;
    if (takes_permits(what) || what == What::overdraw || what == What::undo) {
      std::vector<Doubt::Part> parts;
      for (const Charge& charge : request->charges) {
        parts.push_back({std::string(std::string_view(KeyName(charge))), *charge.limit, charge.cost});
      }
      request->doubt = std::make_shared<Doubt>(what, std::move(parts), std::string(request->id), options_.on_doubt,
                                               request->charged_us);
    }
    copies.push_back(call.late.emplace_back(std::make_unique<KeptRequest>(*request)).get());
  }
  call.script.replace(requests, copies);
  for (ScriptRequest* const request : requests) {
    ++counts_.timeouts;
    request->is_in_doubt = true;
    finish(*request, State::failed);
  }
}

void ScriptPipeline::on_probe(std::uint64_t number, const redis::Reply& reply) {
  if (!reply.is_ok()) record_fault(reply.fault->text);
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
// about how long a full one takes. So it counts as full, until there are enough requests to fill calls. In a cluster
// they seldom are.
void ScriptPipeline::learn(Server& server, const Call& call) {
  server.offset_us = call.script.now_us() - (call.sent.count() + now_.count()) / 2;
  server.has_offset = true;
  const Micros busy = now_ - std::max(call.sent, std::exchange(server.heard_at, now_));
  server.busy_us = server.busy_us * 3 / 4 + busy.count();
  const auto requests = static_cast<std::int64_t>(call.requests.size());
  server.answers = server.answers * 3 / 4 + std::max(requests, is_cluster_ ? kCallOfCluster : kCall);
}

// Whether the waiting requests would take the server half of a request's deadline. One full call may always wait.
bool ScriptPipeline::is_overloaded(const Server& server) const {
  const auto requests = static_cast<std::int64_t>(server.requests);
  return requests >= kCall && requests * server.busy_us > server.answers * (options_.deadline.count() / 2);
}

void ScriptPipeline::read(Call& call, const redis::Reply& reply) {
  if (call.requests.empty()) return;  // close() has failed them
  Server& from = server(server_of(call.slot));
  const auto read = call.script.read(reply.integers);
  if (!read) {
    for (ScriptRequest* const request : std::exchange(call.requests, {})) {
      request->error = read.error().message;
      finish(*request, State::refused);
    }
    return;
  }
  learn(from, call);
  change(server_of(call.slot), [&](Breaker& breaker) { breaker.succeed(now_); });
  const bool is_late = *read == ScriptCall::Read::late;
  if (is_late) ++counts_.late;
  if (is_late) return retry(std::exchange(call.requests, {}));
  for (ScriptRequest* const request : std::exchange(call.requests, {})) {
    if (request->has_no_state) {
      request->error = "the value of this key in Redis is not a limit state of this version; delete the key";
      finish(*request, State::refused);
    } else {
      request->decided_us = call.script.now_us();
      finish(*request, State::answered);
    }
  }
}

// A call that Redis refused as late can succeed the second time, because the refusal contains the server's time. Each
// request is retried at most once, if there is time.
bool ScriptPipeline::may_retry(ScriptRequest& request) {
  return !std::exchange(request.is_retried, true) && request.deadline - now_ >= kRetryMin && !is_closed_;
}

// Retried requests go before newer ones: they have less time. A call is as urgent as its first request, so they
// share no call with others.
void ScriptPipeline::retry(std::span<ScriptRequest* const> requests) {
  Place& place = places_[requests[0]->slot];
  for (std::size_t i = requests.size(); i-- > 0;) {
    if (may_retry(*requests[i])) {
      place.waiting.push_front(requests[i]);
      if (!std::exchange(place.is_ready, true)) ready_.push_back(requests[i]->slot);
    } else {
      ++counts_.timeouts;
      finish(*requests[i], State::failed);
    }
  }
}

// While a slot migrates, the server refuses a call with several keys of it (TRYAGAIN), but not a call with one key.
void ScriptPipeline::fail(Call& call, const redis::Fault& fault) {
  const bool is_between = fault.kind == redis::FaultKind::try_again && call.requests.size() == 1;
  const bool is_unsent = fault.kind == redis::FaultKind::too_many_in_flight;
  if (!is_of_server(fault.kind) && !is_unsent && !is_between) return send_separately(call, fault);
  if (is_of_server(fault.kind)) {
    record_fault(fault.text);
    const bool is_cut_off = fault.kind == redis::FaultKind::disconnected && !fault.was_sent;
    change(
        server_of(call.slot), [&](Breaker& breaker) { is_cut_off ? breaker.open(now_) : breaker.fail(now_); },
        fault.text);
  }
  call.is_given_up = fault.has_late;
  if (call.is_given_up) return give_up(call);
  for (ScriptRequest* const request : std::exchange(call.requests, {})) {
    request->is_torn = is_between && request->may_split;
    if (!request->is_torn) ++(is_unsent ? counts_.unsent : counts_.timeouts);
    request->is_in_doubt = fault.was_sent && !request->is_torn;
    finish(*request, State::failed);
  }
}

// The server has refused a call. Sending each request alone finds the one to blame. A request that is tied to the
// write-back before it must not be decided without that write-back. A write-back has two keys, so it cannot be
// executed while its slot migrates, and both have failed.
void ScriptPipeline::send_separately(Call& call, const redis::Fault& fault) {
  const bool is_one = call.requests.size() == 1;
  bool was_tied = false;
  for (ScriptRequest* const request : std::exchange(call.requests, {})) {
    const bool is_bound = std::exchange(was_tied, request->is_tied) || request->is_tied;
    if (is_one || is_closed_) {
      request->error = fault.text;
      finish(*request, State::refused);
    } else if (is_bound && fault.kind == redis::FaultKind::try_again) {
      ++counts_.timeouts;
      finish(*request, State::failed);
    } else {
      request->is_alone = true;
      enqueue(*request);
    }
  }
}

}  // namespace weir::fleet
