// The commands that a new connection sends first: authentication, name, database, scripts, channels. See node.h.
//
// All are sent together, without waiting for replies. The exception is channels, which wait until RESP3 is confirmed.
// If HELLO 3 is refused, the greeting is repeated in RESP2.
#include <algorithm>
#include <array>

#include "redis/node.h"

namespace weir::redis {
namespace {

constexpr std::string_view kDefaultUser = "default";

bool is_error(const resp::Value& value) { return value.type == resp::Type::error; }

bool says_master(const resp::Value& value) {
  return value.type == resp::Type::array && !value.items.empty() && value.items[0].text == "master";
}

}  // namespace

void Node::push_own(Purpose purpose, std::span<const std::string_view> words, int script) {
  queue_.push({.script = script, .purpose = purpose}, words);
  if (state_ == State::greeting) ++greetings_left_;
}

void Node::greet() {
  const bool is_sentinel = role_ == NodeRole::sentinel;
  const base::redis::Credentials& own = is_sentinel ? shared_.target.sentinel_credentials : shared_.target.credentials;
  const auto password = base::redis::read_password(own);
  if (!password) return lose({FaultKind::noauth, password.error().message});
  greetings_left_ = 0;
  has_password_ = own.are_given();
  hello_refusal_.clear();
  const std::string_view user = own.user.empty() ? kDefaultUser : std::string_view(own.user);
  if (!is_resp2_ && own.are_given()) {
    push_own(Purpose::hello, std::array<std::string_view, 5>{"HELLO", "3", "AUTH", user, *password});
  } else if (!is_resp2_) {
    push_own(Purpose::hello, std::array<std::string_view, 2>{"HELLO", "3"});
  } else if (own.are_given() && own.user.empty()) {
    push_own(Purpose::auth, std::array<std::string_view, 2>{"AUTH", *password});
  } else if (own.are_given()) {
    push_own(Purpose::auth, std::array<std::string_view, 3>{"AUTH", user, *password});
  }
  push_own(Purpose::set_name, std::array<std::string_view, 3>{"CLIENT", "SETNAME", shared_.options.name});
  if (!is_sentinel) {
    if (shared_.target.db != 0) {
      const std::string db = std::to_string(shared_.target.db);
      push_own(Purpose::select, std::array<std::string_view, 2>{"SELECT", db});
    }
    if (shared_.target.layout == base::redis::Layout::sentinel)
      push_own(Purpose::role, std::array<std::string_view, 1>{"ROLE"});
    load_scripts();
  }
  if (is_sentinel) ask_channels();
}

void Node::ask_channels() {
  for (const std::string& channel : channels_) {
    if (std::ranges::find(confirmed_, channel) != confirmed_.end()) continue;
    push_own(Purpose::subscribe, std::array<std::string_view, 2>{"SUBSCRIBE", channel});
  }
}

void Node::note_channel(const resp::Value& value) {
  if (is_error(value)) {
    refusal_ = base::to_string(endpoint_) + ": SUBSCRIBE: " + fit_for_log(value.text);
    ask_again_at_ = shared_.now + shared_.options.subscribe_gap;
    return;
  }
  if (value.items.size() < 2 || std::ranges::find(confirmed_, value.items[1].text) != confirmed_.end()) return;
  confirmed_.push_back(value.items[1].text);
  if (confirmed_.size() == channels_.size()) refusal_.clear();
}

// Retries channels that the server refused: the permission may be granted while we are connected.
void Node::ask_refused_channels() {
  if (state_ != State::ready || shared_.now < ask_again_at_) return;
  ask_again_at_ = kNever;
  ask_channels();
}

void Node::drop_channels() {
  channels_.clear();
  confirmed_.clear();
  refusal_.clear();
  ask_again_at_ = kNever;
}

void Node::load_scripts() {
  for (std::size_t i = 0; i < shared_.scripts.size(); ++i) {
    push_own(Purpose::load_script, std::array<std::string_view, 3>{"SCRIPT", "LOAD", shared_.scripts[i].text},
             static_cast<int>(i));
    ++shared_.counters.script_loads;
  }
}

void Node::on_greeting(const Command& entry, const resp::Value& value) {
  WEIR_ASSERT(greetings_left_ > 0);
  --greetings_left_;
  if (entry.purpose == Purpose::hello && is_error(value)) on_hello_error(value);
  if (is_lost_) return;
  const bool is_needed =
      entry.purpose != Purpose::hello && entry.purpose != Purpose::set_name && entry.purpose != Purpose::subscribe;
  if (is_needed && is_error(value) && hello_refusal_.empty()) {
    return refuse_greeting(kind_of_error(value.text), value.text);
  }
  if (entry.purpose == Purpose::role && hello_refusal_.empty() && !says_master(value)) {
    return refuse_greeting(FaultKind::readonly, "it is not the master");
  }
  if (greetings_left_ == 0) end_greeting();
}

void Node::on_hello_error(const resp::Value& value) {
  const FaultKind kind = kind_of_error(value.text);
  // Before authentication, Valkey answers NOAUTH even if it does not know HELLO. So NOAUTH does not mean a wrong
  // password.
  const bool is_of_password = kind == FaultKind::noauth && (!has_password_ || value.text.starts_with("WRONGPASS"));
  const bool is_final = kind == FaultKind::noauth ? is_of_password : kind != FaultKind::error;
  if (is_final) return refuse_greeting(kind, value.text);
  hello_refusal_ = fit_for_log(value.text);
}

void Node::end_greeting() {
  if (!hello_refusal_.empty()) {
    is_resp2_ = true;
    greet();
    return;
  }
  state_ = State::ready;
  ready_since_ = shared_.now;
  has_failed_ = false;
  ++shared_.counters.connects;
  Queue waiting = std::exchange(backlog_, {});
  waiting.for_each([&](const Command& entry, std::string_view bytes, bool) {
    if (!entry.is_answered) queue_.push_bytes(entry, bytes);
  });
  host_.on_ready(*this);
  if (role_ == NodeRole::sentinel || channels_.empty()) return;
  if (is_resp2_) {
    refuse_channels_in_resp2();
  } else {
    ask_channels();
  }
}

// In RESP2 a subscribed connection takes no other commands, and messages look like replies.
void Node::refuse_channels_in_resp2() {
  refusal_ = base::to_string(endpoint_) + ": SUBSCRIBE needs RESP3, but this server refuses HELLO 3";
}

void Node::refuse_greeting(FaultKind kind, const std::string& text) { lose({kind, fit_for_log(text)}); }

void Node::subscribe(const std::string& channel) {
  if (std::ranges::find(channels_, channel) != channels_.end()) return;
  channels_.push_back(channel);
  if (state_ != State::ready) return;
  const std::array<std::string_view, 2> words{"SUBSCRIBE", channel};
  if (!is_resp2_) {
    queue_.push({.purpose = Purpose::subscribe}, words);
  } else if (role_ != NodeRole::sentinel) {
    refuse_channels_in_resp2();
  }
}

}  // namespace weir::redis
