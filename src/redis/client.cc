// Sending, events and errors: the code that all layouts share. See client.h.
#include "redis/client.h"

#include <sys/epoll.h>

#include <algorithm>

namespace weir::redis {
namespace {

constexpr std::uint64_t kResolverId = 0;
constexpr std::size_t kEventsMax = 64;
constexpr Micros kReconnectGap{5'000'000};  // between two reconnects because of READONLY

// Returns the channel of a message; empty for any other push.
std::string_view channel_of(const resp::Value& push) {
  const bool is_message = push.items.size() == 3 && push.items[0].text == "message";
  return is_message ? std::string_view(push.items[1].text) : std::string_view{};
}

// Explains why a command was retried until its deadline.
std::string_view text_of(FaultKind kind) {
  using enum FaultKind;
  if (kind == try_again) return "the slot was migrating until the deadline (TRYAGAIN)";
  if (kind == loading) return "the node of the slot was loading its data until the deadline (LOADING)";
  if (kind == cluster_down) return "no node served the slot before the deadline (CLUSTERDOWN)";
  return "the node of the slot is not a master yet";
}

}  // namespace

Client::Client(base::redis::Target target, ClientOptions options) : shared_(std::move(target), std::move(options)) {
  shared_.epoll = base::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kResolverId;
  ::epoll_ctl(shared_.epoll.get(), EPOLL_CTL_ADD, shared_.resolver.descriptor(), &event);
  slots_.fill(-1);
  WEIR_ASSERT(!shared_.target.endpoints.empty());
  if (is_cluster()) {
    known_ = shared_.target.endpoints;
  } else {
    make_node(shared_.target.endpoints.front(), NodeRole::master);
  }
  if (is_sentinel()) make_sentinels();
}

Client::~Client() {
  WEIR_ASSERT(!is_running_);
  for (const auto& node : nodes_) {
    if (node != nullptr) node->end();
  }
  std::vector<Parked> parked = std::exchange(parked_, {});
  for (const Parked& one : parked) answer(one.entry, FaultKind::disconnected, "the client was closed", false);
}

int Client::add_script(std::string text) {
  std::string sha = net::sha1_hex(text);
  shared_.scripts.push_back({std::move(text), std::move(sha)});
  return static_cast<int>(shared_.scripts.size()) - 1;
}

Node& Client::make_node(const base::Endpoint& endpoint, NodeRole role) {
  auto place = std::ranges::find_if(nodes_, [](const auto& node) { return node == nullptr; });
  if (place == nodes_.end()) place = nodes_.insert(nodes_.end(), nullptr);
  NodeHost& host = *this;
  *place = std::make_unique<Node>(host, shared_, next_id_++, endpoint, role);
  return **place;
}

Node* Client::find_node(const base::Endpoint& endpoint) {
  for (const auto& node : nodes_) {
    if (node != nullptr && node->endpoint() == endpoint && node->role() != NodeRole::sentinel) return node.get();
  }
  return nullptr;
}

Node* Client::node_of_id(std::uint64_t id) {
  for (const auto& node : nodes_) {
    if (node != nullptr && node->id() == id) return node.get();
  }
  return nullptr;
}

void Client::report_event(Event::Kind kind, const std::string& address, const std::string& text,
                          const Node* node) const {
  const bool has_data = node != nullptr && node->role() != NodeRole::sentinel;
  if (shared_.options.on_event) shared_.options.on_event({kind, address, text, has_data ? node->id() : 0});
}

void Client::answer(const Command& entry, FaultKind kind, std::string_view text, bool was_sent) const {
  if (entry.done.receiver == nullptr) return;
  const Fault fault{kind, text, was_sent};
  entry.done.receiver->on_reply(entry.done.tag, {.fault = &fault});
}

void Client::connect() {
  is_kept_ = true;
  if (is_cluster()) return ask_for_refresh();
  nodes_.front()->keep_connected(true);
}

// route()
//
// Returns the node for commands of this slot; null if unknown.
Node* Client::route(int slot) {
  if (!is_cluster()) return nodes_.front().get();
  if (slot != kAnySlot) {
    const std::int16_t index = slots_[static_cast<std::size_t>(slot)];
    return index < 0 ? nullptr : nodes_[static_cast<std::size_t>(index)].get();
  }
  Node* any = nullptr;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node* const node = nodes_[(next_any_ + i) % nodes_.size()].get();
    if (node == nullptr || node->role() != NodeRole::master) continue;
    if (any == nullptr || (node->is_ready() && !any->is_ready())) any = node;
  }
  ++next_any_;
  return any;
}

void Client::send(Command command, Callback done) {
  ++shared_.counters.commands;
  const auto words = std::exchange(command.words, {});
  WEIR_ASSERT(!words.empty());  // such a command would never be answered
  WEIR_ASSERT(command.slot < kSlots && command.script < static_cast<int>(shared_.scripts.size()));
  command.done = done;
  command.is_pinned = command.node != kAnyNode;
  Node* node = nullptr;
  if (!command.is_pinned) {
    node = route(command.slot);
  } else if (static_cast<std::size_t>(command.node) < nodes_.size()) {
    node = nodes_[static_cast<std::size_t>(command.node)].get();
    if (node != nullptr && node->role() != NodeRole::master) node = nullptr;
  }
  if (node != nullptr) return node->push(command, words);
  if (command.is_pinned) {
    return answer(command, FaultKind::disconnected, "this node has left the cluster", false);
  }
  Queue queue;
  shared_.encode(command, words, queue);
  const bool is_hopeless = has_refresh_failed_ && command.deadline <= refresh_at_;
  if (is_hopeless || parked_.size() >= shared_.options.commands_max) {
    return answer(command, is_hopeless ? FaultKind::disconnected : FaultKind::too_many_in_flight, map_failure_, false);
  }
  park_without_owner(command, queue.front_bytes());
}

void Client::park(const Command& entry, std::string_view bytes, Micros due, FaultKind why) {
  parked_.push_back({entry, std::string(bytes), due, why});
}

void Client::resend(const Command& entry, std::string_view bytes) {
  if (Node* const node = route(entry.slot); node != nullptr) {
    node->push_bytes(entry, bytes, false);
  } else {
    park_without_owner(entry, bytes);
  }
}

// Parks a command until a map names the owner of its slot.
void Client::park_without_owner(const Command& entry, std::string_view bytes) {
  ask_for_refresh();
  park(entry, bytes, kNever, has_map_ ? FaultKind::cluster_down : FaultKind::disconnected);
}

void Client::turn_parked() {
  if (parked_.empty()) return;
  const Micros now = shared_.now;
  std::vector<Parked> parked = std::exchange(parked_, {});
  for (Parked& one : parked) {
    const bool is_hopeless = one.why == FaultKind::disconnected && has_refresh_failed_ && !is_refreshing_ &&
                             one.entry.deadline <= refresh_at_;
    if (one.entry.deadline <= now || is_hopeless) {
      if (!is_hopeless) ++shared_.counters.timeouts;
      const bool is_waiting_for_map = one.why == FaultKind::disconnected && !is_hopeless;
      answer(one.entry, is_waiting_for_map ? FaultKind::timeout : one.why,
             one.why == FaultKind::disconnected ? std::string_view(map_failure_) : text_of(one.why), false);
    } else if (one.due <= now || (one.due == kNever && route(one.entry.slot) != nullptr)) {
      resend(one.entry, one.bytes);
    } else {
      parked_.push_back(std::move(one));
    }
  }
}

void Client::flush(Micros now) {
  WEIR_ASSERT(!std::exchange(is_running_, true));
  shared_.now = now;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i] != nullptr) nodes_[i]->flush();
  }
  is_running_ = false;
}

Micros Client::due() const {
  Micros due = is_cluster() && !is_refreshing_ ? refresh_at_ : kNever;
  for (const auto& node : nodes_) {
    if (node != nullptr) due = std::min(due, node->due());
  }
  for (const Parked& one : parked_) due = std::min({due, one.due, one.entry.deadline});
  return due;
}

void Client::handle_events() {
  std::array<epoll_event, kEventsMax> events;
  const int count = ::epoll_wait(shared_.epoll.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 != kResolverId) {
      if (Node* const node = node_of_id(event.data.u64); node != nullptr) node->on_events(event.events);
      continue;
    }
    for (Resolved& resolved : shared_.resolver.take()) {
      if (Node* const node = node_of_id(resolved.ticket >> 32); node != nullptr) node->on_resolved(std::move(resolved));
    }
  }
}

void Client::turn(Micros now) {
  WEIR_ASSERT(!std::exchange(is_running_, true));
  shared_.now = now;
  handle_events();
  if (is_cluster() && !is_refreshing_ && now >= refresh_at_) begin_refresh();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {  // nodes may be added meanwhile
    if (nodes_[i] != nullptr) nodes_[i]->turn();
  }
  turn_parked();
  drop_left();
  tend_subscriptions();
  is_running_ = false;
  flush(now);
}

std::uint64_t Client::owner_of(int slot) const {
  const int place =
      slot < 0 || static_cast<std::size_t>(slot) >= slots_.size() ? -1 : slots_[static_cast<std::size_t>(slot)];
  return place < 0 || nodes_[static_cast<std::size_t>(place)] == nullptr
             ? 0
             : nodes_[static_cast<std::size_t>(place)]->id();
}

std::vector<NodeState> Client::masters() const {
  std::vector<NodeState> states;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node* const node = nodes_[i].get();
    if (node == nullptr || node->role() != NodeRole::master) continue;
    const base::Endpoint& at = node->endpoint();
    states.push_back(
        {static_cast<int>(i), at.host.empty() ? at.path : base::to_string(at), node->is_ready(), node->in_flight()});
  }
  return states;
}

// --- events of nodes ---

void Client::on_dial_due(Node& node) {
  if (is_sentinel() && node.role() == NodeRole::master) return begin_search();
  node.dial(node.endpoint());
}

void Client::on_ready(Node& node) { report_event(Event::Kind::connected, base::to_string(node.endpoint()), "", &node); }

void Client::on_lost(Node& node, const std::string& why) {
  if (node.has_new_failure()) report_event(Event::Kind::lost, base::to_string(node.endpoint()), why, &node);
  if (is_cluster()) {
    node.drop_channels();  // another node can subscribe instead
    ask_for_refresh();
  }
  if (&node == watched_) {
    const auto place = std::ranges::find(sentinels_, &node);
    std::rotate(sentinels_.begin(), place + 1, sentinels_.end());
    watch_sentinel(*sentinels_.front());
  }
}

void Client::on_push(Node& node, const resp::Value& push) {
  const std::string_view channel = channel_of(push);
  if (channel.empty()) return;
  const std::string_view payload = push.items[2].text;
  if (node.role() == NodeRole::sentinel) return on_switch(channel, payload);
  for (std::size_t i = 0; i < subscribers_.size(); ++i) {
    if (subscribers_[i].first == channel) subscribers_[i].second(payload);
  }
}

void Client::on_refused(Node& node, const Command& entry, std::string_view bytes, std::string_view error) {
  const FaultKind kind = kind_of_error(error);
  if (kind == FaultKind::noscript && entry.script != kNoScript && !entry.is_reloaded) {
    return node.push_reloaded(entry, bytes);
  }
  if (is_cluster() && !entry.is_pinned) {
    if (redirect(node, entry, bytes, error) || retry(entry, bytes, kind)) return;
  } else if (!is_cluster() && (kind == FaultKind::readonly || kind == FaultKind::master_down)) {
    reconnect_once(node);
  }
  std::string text = base::to_string(node.endpoint()) + ": " + fit_for_log(error);
  if (!is_cluster() && error.starts_with("MOVED ")) text += "; this Redis is a cluster: write redis+cluster://";
  answer(entry, kind, text, true);
}

// Reconnects, since a replica may have been a master when we connected.
void Client::reconnect_once(Node& node) {
  if (shared_.now - reconnected_at_ < kReconnectGap) return;
  reconnected_at_ = shared_.now;
  node.retire();
}

void Client::on_reply(std::uint64_t tag, const Reply& reply) {
  if (is_cluster()) return on_map(reply);
  on_sentinel(static_cast<std::size_t>(tag), reply);
}

// --- channels ---

void Client::subscribe(std::string channel, Client::Subscriber subscriber) {
  subscribers_.emplace_back(std::move(channel), std::move(subscriber));
  if (is_cluster()) ask_for_refresh();
  tend_subscriptions();
}

// One node subscribes to all channels. In a cluster it is a connected one, and another takes over when it is lost.
void Client::tend_subscriptions() {
  if (subscribers_.empty()) return;
  Node* chosen = nullptr;
  for (const auto& node : nodes_) {
    if (node != nullptr && node->role() == NodeRole::master && node->has_channels()) chosen = node.get();
  }
  if (chosen == nullptr) chosen = route(kAnySlot);
  if (chosen == nullptr) return;
  for (const auto& subscriber : subscribers_) chosen->subscribe(subscriber.first);
  chosen->ask_refused_channels();
  chosen->keep_connected(true);
}

Client::Subscription Client::subscription() const {
  Client::Subscription subscription{.is_complete = subscribers_.empty()};
  for (const auto& node : nodes_) {
    if (node == nullptr || node->role() != NodeRole::master || !node->has_channels()) continue;
    subscription.is_complete = subscription.is_complete || node->is_subscribed_to_all();
    if (!node->refusal_of_channels().empty()) subscription.refusal = node->refusal_of_channels();
  }
  if (subscription.is_complete) subscription.refusal = {};
  return subscription;
}

// Removes nodes that are no longer masters once nothing is in flight on them.
void Client::drop_left() {
  for (auto& node : nodes_) {
    const bool has_left = node != nullptr && (node->role() == NodeRole::leaving || node->role() == NodeRole::asked);
    if (has_left && node->in_flight() == 0 && !(is_refreshing_ && node->id() == asked_id_)) node.reset();
  }
}

Result<void> check_files(const base::redis::Target& target) {
  for (const base::redis::Credentials* one : {&target.credentials, &target.sentinel_credentials}) {
    if (const auto password = base::redis::read_password(*one); !password) return fail(password.error());
  }
  if (!target.tls.is_on) return {};
  if (const auto loaded = net::load_tls(target.tls); !loaded) return fail(loaded.error());
  return {};
}

}  // namespace weir::redis
