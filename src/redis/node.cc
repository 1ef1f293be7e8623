// Dialing, losing a connection, and dialing again. See node.h.
#include "redis/node.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

namespace weir::redis {
namespace {

// After a temporary refusal such as LOADING the server is reachable, so the wait need not grow.
constexpr Micros kSoonMin{50'000};
constexpr Micros kSoonMax{200'000};
// A connection that lasted this long was good, so the wait starts small again.
constexpr Micros kProvenAfter{1'000'000};

bool passes_soon(FaultKind kind) {
  return kind == FaultKind::loading || kind == FaultKind::busy || kind == FaultKind::readonly;
}

// Detects a peer that disappears silently. A unix socket does not support these options, nor need them.
void watch_for_silence(int socket) {
  constexpr int kOptions[][3] = {{IPPROTO_TCP, TCP_USER_TIMEOUT, 2'000},
                                 {SOL_SOCKET, SO_KEEPALIVE, 1},
                                 {IPPROTO_TCP, TCP_KEEPIDLE, 15},
                                 {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                                 {IPPROTO_TCP, TCP_KEEPCNT, 3}};
  for (const auto& [level, name, value] : kOptions) (void)::setsockopt(socket, level, name, &value, sizeof value);
}

}  // namespace

Node::Node(NodeHost& host, Shared& shared, std::uint64_t id, base::Endpoint endpoint, NodeRole role)
    : host_(host),
      shared_(shared),
      id_(id),
      endpoint_(std::move(endpoint)),
      role_(role),
      backoff_(shared.options.backoff_first, shared.options.backoff_most) {}

Node::~Node() = default;

void Node::start_dialing() {
  if (state_ == State::idle) wait_until(dial_at_);
}

void Node::wait_until(Micros when) {
  state_ = State::waiting;
  dial_at_ = when;
}

void Node::keep_connected(bool is_kept) {
  is_kept_ = is_kept;
  if (is_kept) start_dialing();
}

void Node::dial(base::Endpoint endpoint) {
  endpoint_ = std::move(endpoint);
  ++shared_.counters.dials;
  ++dial_number_;
  state_ = State::resolving;
  connect_by_ = shared_.now + shared_.options.connect_timeout;
  if (auto known = Resolver::known(endpoint_)) return on_resolved({dial_number_, *std::move(known), {}});
  shared_.resolver.ask(endpoint_, (id_ << 32) | (dial_number_ & 0xFFFFFFFFU));
}

void Node::cannot_dial(FaultKind kind, const std::string& why) { lose({kind, why}); }

void Node::on_resolved(Resolved resolved) {
  if (state_ != State::resolving || (resolved.ticket & 0xFFFFFFFFU) != (dial_number_ & 0xFFFFFFFFU)) return;
  if (resolved.addresses.empty()) return lose({FaultKind::disconnected, resolved.failure});
  addresses_ = std::move(resolved.addresses);
  address_at_ = 0;
  try_address();
}

std::unique_ptr<net::TlsStream> Node::open_tls(std::string& failure) {
  if (shared_.tls == nullptr || shared_.tls->has_changed()) {
    auto loaded = net::load_tls(shared_.target.tls);
    if (!loaded) {
      failure = loaded.error().message;
      return nullptr;
    }
    shared_.tls = *std::move(loaded);
  }
  auto stream = shared_.tls->open(endpoint_.host);
  if (stream == nullptr) failure = "out of memory for TLS";
  return stream;
}

// Tries the addresses of a name one after the other. Each gets the full connect timeout.
void Node::try_address() {
  std::string failure;
  while (address_at_ < addresses_.size()) {
    std::unique_ptr<net::TlsStream> tls;
    if (shared_.target.tls.is_on && (tls = open_tls(failure)) == nullptr) break;
    state_ = State::connecting;
    connect_by_ = shared_.now + shared_.options.connect_timeout;
    watched_ = 0;
    const net::Wire::Step step = wire_.open(addresses_[address_at_++], std::move(tls));
    if (step == net::Wire::Step::failed) {
      failure = why_not_dialled(wire_.failure());
      continue;
    }
    watch_for_silence(wire_.descriptor());
    watch();
    if (step == net::Wire::Step::done) connected();
    return;
  }
  lose({FaultKind::disconnected, failure});
}

std::string Node::why_not_dialled(std::string why) const {
  return std::move(why) + (wire_.may_lack_tls() ? "; if this server does not use TLS, write redis://" : "");
}

void Node::watch() {
  if (!wire_.is_open()) return;
  const bool wants_write = wire_.wants_write() || (state_ >= State::greeting && queue_.has_unsent());
  const std::uint32_t wanted = EPOLLIN | (wants_write ? EPOLLOUT : 0U);
  if (wanted == watched_) return;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = id_;
  ::epoll_ctl(shared_.epoll.get(), watched_ == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, wire_.descriptor(), &event);
  watched_ = wanted;
}

void Node::connected() {
  state_ = State::greeting;
  connect_by_ = shared_.now + shared_.options.connect_timeout;
  received_at_ = shared_.now;
  in_.clear();
  in_at_ = 0;
  lean_tries_ = 0;
  parser_ = {};
  loading_.clear();
  confirmed_.clear();
  ask_again_at_ = kNever;
  is_proven_ = is_retiring_ = is_resp2_ = has_received_ = false;
  is_quiet_ = true;
  hello_refusal_.clear();
  greet();
  flush();
}

void Node::on_events(std::uint32_t events) {
  if (state_ == State::connecting) {
    const net::Wire::Step step = wire_.advance();
    if (step == net::Wire::Step::failed) {
      if (address_at_ < addresses_.size()) return try_address();
      return lose({FaultKind::disconnected, why_not_dialled(wire_.failure())});
    }
    if (step == net::Wire::Step::again) return watch();
    connected();
    if (state_ < State::greeting) return;
  }
  if (state_ < State::greeting) return;
  if ((events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) read();
  if (state_ >= State::greeting) flush();
}

void Node::turn() {
  const Micros now = shared_.now;
  expire();
  if ((state_ == State::connecting || state_ == State::greeting) && now >= give_up_at()) {
    if (state_ == State::connecting && address_at_ < addresses_.size()) return try_address();
    return lose({FaultKind::disconnected, state_ == State::connecting
                                              ? why_not_dialled("cannot connect: no answer in time")
                                              : "the server did not answer the greeting (HELLO, AUTH) in time"});
  }
  if (state_ == State::resolving && now >= connect_by_) {
    return lose({FaultKind::disconnected, "the DNS lookup of " + endpoint_.host + " took too long"});
  }
  ping();
  if (now >= silent_at()) return lose({FaultKind::disconnected, "the server sent nothing for too long"});
  if (state_ == State::ready && is_retiring_ && queue_.empty()) {
    backoff_.reset();
    wire_.close();
    state_ = State::idle;
    dial_at_ = now;
    is_retiring_ = false;
    start_dialing();
  }
  if (state_ == State::waiting && now >= dial_at_) {
    state_ = State::addressing;
    host_.on_dial_due(*this);
  }
}

// A connection that TCP has not accepted times out earlier than one with a slow handshake.
Micros Node::give_up_at() const {
  const Micros all = shared_.options.connect_timeout;
  const bool is_unreached = state_ == State::connecting && wire_.is_unreached();
  return is_unreached ? connect_by_ - all + std::min(all, shared_.options.reach_timeout) : connect_by_;
}

Micros Node::due() const {
  Micros due = std::min({earliest_, silent_at(), ping_at()});
  if (state_ == State::ready) due = std::min(due, ask_again_at_);
  if (state_ == State::waiting) due = std::min(due, dial_at_);
  if (state_ == State::resolving || state_ == State::connecting || state_ == State::greeting) {
    due = std::min(due, give_up_at());
  }
  return due;
}

bool Node::is_hopeless(Micros deadline) const {
  return state_ == State::waiting && has_failed_ && deadline <= std::min(dial_at_, host_.reroute_at());
}

// lose()
//
// Handles a lost connection or a failed dial. Commands of which any byte was sent may have been executed, so they are
// answered with a fault. Other commands wait for the next connection, if it can come before their deadline.
void Node::lose(Failure failure) {
  const bool was_ready = state_ == State::ready;
  const bool was_good = is_proven_ || (was_ready && shared_.now - ready_since_ >= kProvenAfter);
  ++(was_ready ? shared_.counters.lost : shared_.counters.failures);
  is_lost_ = true;
  wire_.close();
  const std::string known = has_failed_ ? last_failure_.text : std::string();
  last_failure_ = std::move(failure);
  if (!hello_refusal_.empty())
    last_failure_.text += ", after the server answered HELLO: " + std::exchange(hello_refusal_, {});
  last_failure_.text = base::to_string(endpoint_) + ": " + last_failure_.text;
  has_new_failure_ = last_failure_.text != known;
  has_failed_ = true;
  state_ = State::idle;
  is_retiring_ = is_proven_ = false;
  if (was_ready && was_good) backoff_.reset();
  dial_at_ = shared_.now + (passes_soon(last_failure_.kind) ? shared_.dice.between(kSoonMin, kSoonMax) : dial_wait());
  take_back_unsent();
  host_.on_lost(*this, last_failure_.text);
  if (state_ == State::idle && (is_kept_ || !backlog_.empty())) start_dialing();
  answer_hopeless();
}

// Returns the wait before the next dial.
Micros Node::dial_wait() {
  const Micros drawn = backoff_.next(shared_.dice);
  return shared_.options.spread ? shared_.options.spread(drawn) : drawn;
}

void Node::take_back_unsent() {
  Queue waiting = std::exchange(backlog_, {});
  const auto keep = [&](const Command& entry, std::string_view bytes) {
    if (!entry.is_answered && entry.purpose == Purpose::command) backlog_.push_bytes(entry, bytes);
  };
  std::vector<FailedCommand> failed;
  queue_.for_each([&](const Command& entry, std::string_view bytes, bool was_sent) {
    if (!was_sent) return keep(entry, bytes);
    if (entry.purpose != Purpose::command || (entry.is_answered && !entry.wants_late)) return;
    failed.push_back({entry.done, true, FaultKind::disconnected, entry.is_answered});
  });
  waiting.for_each([&](const Command& entry, std::string_view bytes, bool) { keep(entry, bytes); });
  queue_.clear();
  report_failed(failed, std::string(last_failure_.text));
}

void Node::answer_hopeless() {
  if (state_ != State::waiting) return;
  std::vector<FailedCommand> failed;
  backlog_.for_each([&](Command& entry, std::string_view, bool) {
    if (entry.is_answered || !is_hopeless(entry.deadline)) return;
    entry.is_answered = true;
    if (entry.purpose == Purpose::command) failed.push_back({entry.done, false, last_failure_.kind});
  });
  if (failed.empty()) return;
  backlog_.drop_unsent_answered();
  report_failed(failed, std::string(last_failure_.text));
}

void Node::retire() {
  if (state_ == State::ready) is_retiring_ = true;
}

void Node::move_to(base::Endpoint endpoint, const std::string& why) {
  if (endpoint == endpoint_ && state_ >= State::connecting) return;
  backoff_.reset();
  if (state_ >= State::greeting) lose({FaultKind::disconnected, why});
  wire_.close();
  backoff_.reset();
  dial(std::move(endpoint));
}

void Node::end() {
  is_kept_ = false;
  std::vector<FailedCommand> failed;
  for (Queue* queue : {&queue_, &backlog_}) {
    queue->for_each([&](const Command& entry, std::string_view, bool was_sent) {
      if (entry.purpose != Purpose::command || (entry.is_answered && !entry.wants_late)) return;
      failed.push_back({entry.done, was_sent, FaultKind::disconnected, entry.is_answered});
    });
    queue->clear();
  }
  wire_.close();
  state_ = State::idle;
  report_failed(failed, "the client was closed");
}

}  // namespace weir::redis
