// Sends commands, reads replies, and expires commands. See node.h.
//
// Callbacks may call send(): all queue changes are finished before a callback runs.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "redis/node.h"
#include "resp/integers.h"

namespace weir::redis {
namespace {

constexpr int kLeanTriesMax = 3;
constexpr Micros kPingPeriod{3'000'000};
constexpr std::size_t kInputIdle = std::size_t{256} << 10;

void deliver(const Callback& done, const Reply& reply) {
  if (done.receiver != nullptr) done.receiver->on_reply(done.tag, reply);
}

}  // namespace

void Node::deliver_late(const Command& entry, const Reply& reply) {
  if (entry.is_answered && entry.wants_late && entry.done.receiver != nullptr) {
    entry.done.receiver->on_late(entry.done.tag, reply);
  }
}

void Node::report_failed(std::vector<FailedCommand>& failed, std::string_view text) {
  for (const FailedCommand& one : failed) {
    const Fault fault{one.kind, text, one.was_sent, one.has_late};
    if (!one.is_late) {
      deliver(one.done, {.fault = &fault});
    } else if (one.done.receiver != nullptr) {
      one.done.receiver->on_late(one.done.tag, {.fault = &fault});
    }
  }
  failed.clear();
}

// admit()
//
// Returns whether there is capacity for one more command, and it can be answered in time. If not, answers it.
bool Node::admit(Command& entry) {
  const bool is_full =
      in_flight() >= shared_.options.commands_max || queue_.bytes() + backlog_.bytes() >= shared_.options.bytes_max;
  if (!is_full && !is_hopeless(entry.deadline)) {
    earliest_ = std::min(earliest_, entry.deadline);
    return true;
  }
  const std::string text =
      is_full ? base::to_string(endpoint_) + ": too many commands or bytes are in flight" : last_failure_.text;
  const Fault fault{is_full ? FaultKind::too_many_in_flight : last_failure_.kind, text, false};
  deliver(entry.done, {.fault = &fault});
  return false;
}

void Shared::encode(const Command& entry, std::span<const std::string_view> words, Queue& queue) const {
  if (entry.script == kNoScript) return queue.push(entry, words);
  queue.push_script(entry, scripts[static_cast<std::size_t>(entry.script)].sha, words);
}

void Node::push(Command entry, std::span<const std::string_view> words) {
  if (!admit(entry)) return;
  shared_.encode(entry, words, is_sending() ? queue_ : backlog_);
  start_dialing();
}

void Node::push_bytes(Command entry, std::string_view bytes, bool is_asking) {
  if (!admit(entry)) return;
  Queue& queue = is_sending() ? queue_ : backlog_;
  const std::array<std::string_view, 1> asking{"ASKING"};
  if (is_asking) queue.push({.deadline = entry.deadline, .purpose = Purpose::asking}, asking);
  queue.push_bytes(entry, bytes);
  start_dialing();
}

void Node::push_reloaded(Command entry, std::string_view bytes) {
  entry.is_reloaded = true;
  // Otherwise the greeting of the next connection loads it.
  if (is_sending() && std::ranges::find(loading_, entry.script) == loading_.end()) {
    loading_.push_back(entry.script);
    ++shared_.counters.script_loads;
    const std::string_view text = shared_.scripts[static_cast<std::size_t>(entry.script)].text;
    push_own(Purpose::load_script, std::array<std::string_view, 3>{"SCRIPT", "LOAD", text}, entry.script);
  }
  push_bytes(entry, bytes, false);
}

void Node::flush() {
  if (state_ < State::greeting) return;
  if (is_quiet_ && !queue_.empty()) {
    received_at_ = shared_.now;
    is_quiet_ = false;
  }
  if (queue_.has_unsent() || wire_.wants_write()) {
    std::size_t taken = 0;
    const net::Wire::Step step = wire_.write(queue_.unsent(), taken);
    queue_.note_sent(taken);
    if (step == net::Wire::Step::failed) return lose({FaultKind::disconnected, wire_.failure()});
  }
  watch();
}

void Node::read() {
  const std::size_t before = in_.size();
  const net::Wire::Step step = wire_.read(in_);
  if (in_.size() > before) {
    received_at_ = shared_.now;
    has_received_ = true;
  }
  is_lost_ = false;
  read_replies();
  if (is_lost_ || step != net::Wire::Step::failed) return;
  const bool may_be_tls = !has_received_ && !shared_.target.tls.is_on;
  lose({FaultKind::disconnected, wire_.failure() + (may_be_tls ? "; if this server uses TLS, write rediss://" : "")});
}

void Node::read_replies() {
  while (!is_lost_ && in_at_ < in_.size() && read_reply()) {
  }
  if (is_lost_) return;
  if (queue_.empty()) is_quiet_ = true;
  if (in_at_ == in_.size()) {
    base::empty_out(in_, kInputIdle);
  } else {
    in_.erase(0, in_at_);
  }
  in_at_ = 0;
}

// read_reply()
//
// Processes one reply. Returns false if it is incomplete.
bool Node::read_reply() {
  const std::string_view input = std::string_view(in_).substr(in_at_);
  const bool is_lean = queue_.is_front_sent() && queue_.front().reading == Reading::integers;
  if (is_lean && lean_tries_ < kLeanTriesMax) {
    const resp::IntegersReply lean = resp::read_integers(input, integers_);
    if (lean.status == resp::IntegersReply::Status::done) {
      in_at_ += lean.consumed;
      lean_tries_ = 0;
      take_integers();
      return true;
    }
    if (lean.status == resp::IntegersReply::Status::need_more) {
      ++lean_tries_;
      return false;
    }
    lean_tries_ = kLeanTriesMax;
  }
  const resp::ParsedReply reply = parser_.parse(input);
  if (reply.status == resp::Status::need_more) return false;
  if (reply.status == resp::Status::bad) {
    lose({FaultKind::disconnected, "this is not Redis: " + reply.reason});
    return false;
  }
  in_at_ += reply.consumed;
  lean_tries_ = 0;
  // It arrived in many pieces, but consists of integers as requested.
  if (is_lean &&
      resp::read_integers(input.substr(0, reply.consumed), integers_).status == resp::IntegersReply::Status::done) {
    take_integers();
    return true;
  }
  return take_reply(reply.value);
}

// Whether this is a message of a channel, which RESP2 sends as an array.
bool Node::is_subscribed_by(const resp::Value& push) const {
  if (push.items.empty()) return false;
  return push.type == resp::Type::push || (is_resp2_ && !channels_.empty() && push.type == resp::Type::array &&
                                           (push.items[0].text == "message" || push.items[0].text == "subscribe"));
}

bool Node::take_reply(const resp::Value& value) {
  if (value.type == resp::Type::push || is_subscribed_by(value)) {
    const bool is_confirmed = !value.items.empty() && value.items[0].text == "subscribe" && queue_.is_front_sent() &&
                              queue_.front().purpose == Purpose::subscribe;
    if (!is_confirmed) {
      host_.on_push(*this, value);
      return !is_lost_;
    }
  }
  if (!queue_.is_front_sent()) {
    lose({FaultKind::disconnected, "this is not Redis: it sent a reply without a request"});
    return false;
  }
  const Command entry = queue_.front();
  const bool is_refused = value.type == resp::Type::error && entry.purpose == Purpose::command && !entry.is_answered;
  if (is_refused) command_.assign(queue_.front_bytes());
  queue_.pop();
  if (is_refused) {
    count_reply(entry);
    host_.on_refused(*this, entry, command_, value.text);
  } else {
    take_value(entry, value);
  }
  return !is_lost_;
}

void Node::count_reply(const Command& entry) {
  if (entry.purpose != Purpose::command) return;
  if (entry.is_answered) ++shared_.counters.late_replies;
  if (!is_proven_) backoff_.reset();
  is_proven_ = true;
}

void Node::take_value(const Command& entry, const resp::Value& value) {
  count_reply(entry);
  if (entry.purpose == Purpose::load_script) std::erase(loading_, entry.script);
  if (entry.purpose == Purpose::subscribe) note_channel(value);
  if (state_ == State::greeting) {
    on_greeting(entry, value);
  } else if (entry.purpose == Purpose::command && !entry.is_answered) {
    deliver(entry.done, {.value = &value});
  } else if (entry.purpose == Purpose::command) {
    deliver_late(entry, {.value = &value});
  }
}

void Node::take_integers() {
  const Command entry = queue_.front();
  queue_.pop();
  count_reply(entry);
  entry.is_answered ? deliver_late(entry, {.integers = integers_}) : deliver(entry.done, {.integers = integers_});
}

// expire()
//
// Answers all commands whose deadline has passed, in both queues. earliest_ is recomputed only when it has passed; it
// may be the deadline of a command answered since, and then the scan finds nothing. Commands that waited for a
// connection are answered with the reason why there is none.
void Node::expire() {
  const Micros now = shared_.now;
  if (now < earliest_) return;
  earliest_ = kNever;
  std::vector<FailedCommand> failed = std::exchange(failed_, {});
  for (Queue* queue : {&queue_, &backlog_}) {
    bool has_unsent = false;
    queue->for_each([&](Command& entry, std::string_view, bool was_sent) {
      if (entry.is_answered) return;
      if (entry.deadline > now) {
        earliest_ = std::min(earliest_, entry.deadline);
        return;
      }
      entry.is_answered = true;
      has_unsent = has_unsent || !was_sent;
      if (entry.purpose != Purpose::command) return;
      failed.push_back({entry.done, was_sent, entry.refusal, false, was_sent && entry.wants_late});
    });
    if (has_unsent) queue->drop_unsent_answered();
  }
  if (queue_.empty()) is_quiet_ = true;
  shared_.counters.timeouts += failed.size();
  if (!failed.empty()) report_failed(failed, is_down() ? std::string(last_failure_.text) : "no answer in time");
  if (failed_.empty()) failed_ = std::move(failed);
}

// ping()
//
// Sends PING on a connection that only listens, because it would not notice a peer that is gone.
void Node::ping() {
  if (shared_.now < ping_at()) return;
  push_own(Purpose::ping, std::array<std::string_view, 1>{"PING"});
}

Micros Node::ping_at() const {
  const bool is_listening = state_ == State::ready && !channels_.empty() && queue_.empty();
  return is_listening ? received_at_ + kPingPeriod : kNever;
}

Micros Node::silent_at() const {
  const bool is_awaiting = state_ == State::ready && !is_quiet_ && !queue_.empty();
  return is_awaiting ? received_at_ + shared_.options.silence : kNever;
}

}  // namespace weir::redis
