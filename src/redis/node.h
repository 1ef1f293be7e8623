// One server that commands go to: its connection, what is under way on it, and what waits for it.
//
// It dials when there is something to send or it is to be kept connected; greets; sends what waited; reads replies in
// order; gives up commands whose deadline has passed; and after a loss dials again, later and later. Whom it is
// dialling, and what becomes of an error reply, its host says, which is the Core. One thread. Tested by client_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis/backoff.h"
#include "redis/client.h"
#include "redis/queue.h"
#include "redis/resolver.h"
#include "redis/wire.h"

namespace weir::redis {

class Node;

// What all nodes of a client share.
struct Shared {
  explicit Shared(Target to, ClientOptions how) : target(std::move(to)), options(std::move(how)), dice(options.seed) {}

  struct Script {
    std::string text;
    std::string sha;
  };

  Target target;
  ClientOptions options;
  Dice dice;
  Counters counters{};
  Descriptor epoll{};
  Resolver resolver{};
  std::vector<Script> scripts{};
  std::shared_ptr<const TlsContext> tls{};
  Micros now{0};
};

class NodeHost {
 public:
  // It is time to dial: dial() or cannot_dial(), now or later.
  virtual void on_dial_due(Node& node) = 0;
  virtual void on_ready(Node& node) = 0;
  // Or it could not be connected to.
  virtual void on_lost(Node& node, const std::string& why) = 0;
  virtual void on_push(Node& node, const resp::Value& push) = 0;
  // An error reply to a command that somebody still waits for. The command's bytes hold as long as the call.
  virtual void on_refused(Node& node, const Pending& entry, std::string_view command, std::string_view error) = 0;
  // When a command that waits for an unreachable node may be sent elsewhere; kNever.
  virtual Micros hope() const = 0;

 protected:
  ~NodeHost() = default;
};

// What a node is to us, which says how it is greeted.
enum class NodeRole : std::uint8_t {
  master,
  asked,     // for the map of the cluster
  sentinel,  // with a password of its own; it has no scripts and no databases
  leaving,   // no longer a master; goes when nothing is under way
};

class Node {
 public:
  Node(NodeHost& host, Shared& shared, std::uint64_t id, Endpoint endpoint, NodeRole role);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::uint64_t id() const { return id_; }
  const Endpoint& endpoint() const { return endpoint_; }
  NodeRole role() const { return role_; }
  void set_role(NodeRole role) { role_ = role; }
  bool is_ready() const { return state_ == State::ready; }
  bool is_down() const { return has_failed_ && state_ != State::ready; }
  // Whether the last failure is another than the one before, with a connection between them or another reason.
  bool has_news() const { return has_news_; }
  std::size_t in_flight() const { return queue_.size() + backlog_.size(); }

  // Puts a command behind the others; false: it was answered at once.
  bool push(Pending entry, std::span<const std::string_view> words);
  bool push_bytes(Pending entry, std::string_view command, bool is_asking);
  // Once more, behind a SCRIPT LOAD unless one is under way.
  bool push_reloaded(Pending entry, std::string_view command);
  // Of the commands that wait for a connection, all: they belong to the caller then.
  Queue take_backlog() { return std::exchange(backlog_, {}); }

  void keep_connected(bool is_kept);
  void subscribe(const std::string& channel);
  bool has_channels() const { return !channels_.empty(); }
  void drop_channels();
  bool hears_channels() const { return is_ready() && heard_.size() == channels_.size(); }
  const std::string& refusal_of_channels() const { return refusal_; }
  void ask_refused_channels();
  // Connects anew when all that is under way is answered.
  void retire();
  // To another address, at once; what is under way there is lost.
  void move_to(Endpoint endpoint, const std::string& why);

  void dial(Endpoint endpoint);
  void cannot_dial(FaultKind kind, const std::string& why);
  void on_resolved(Resolved resolved);
  void on_events(std::uint32_t events);
  void turn();
  void flush();
  Micros due() const;
  // Answers everything, for good.
  void end();

 private:
  enum class State : std::uint8_t { idle, waiting, addressing, resolving, connecting, greeting, ready };
  struct Farewell {
    Callback done;
    bool was_sent;
    FaultKind kind;
    bool is_late = false;   // its deadline had passed before
    bool has_late = false;  // its reply is still to come, and wanted
  };
  struct Failure {
    FaultKind kind = FaultKind::disconnected;
    std::string text{};
  };

  // node.cc: dialling and losing
  void want();
  void wait_until(Micros when);
  Micros give_up_at() const;
  void try_address();
  std::string why_not_dialled(std::string why) const;
  void connected();
  void lose(Failure failure);
  Micros rest();
  void take_back_unsent();
  void answer_hopeless();
  bool is_hopeless(Micros deadline) const;
  std::unique_ptr<TlsStream> open_tls(std::string& failure);
  void watch();

  // greeting.cc
  void greet();
  void greet_in_resp2();
  void push_own(Purpose purpose, std::span<const std::string_view> words, std::int16_t script = kNoScript);
  void load_scripts();
  void ask_channels();
  void note_channel(const resp::Value& value);
  void on_greeting(const Pending& entry, const resp::Value& value);
  void judge_hello(const resp::Value& value);
  void end_greeting();
  void refuse_channels_in_resp2();
  void refuse_greeting(FaultKind kind, const std::string& text);

  // talk.cc: sending, reading, giving up
  bool admit(Pending& entry);
  void note(const Pending& entry);
  void read();
  void read_replies();
  bool read_reply();
  bool take_reply(const resp::Value& value);
  void take_value(const Pending& entry, const resp::Value& value);
  void take_integers();
  void note_heard(const Pending& entry);
  void expire();
  static void tell_late(const Pending& entry, const Reply& reply);
  void bid(std::vector<Farewell>& farewells, std::string_view text);
  bool is_subscribed_by(const resp::Value& push) const;
  Micros silent_at() const;
  void ping();
  Micros ping_at() const;

  NodeHost& host_;
  Shared& shared_;
  const std::uint64_t id_;
  Endpoint endpoint_;
  NodeRole role_;

  State state_ = State::idle;
  Backoff backoff_;
  Micros dial_at_{0};     // waiting: when; else not before
  Micros connect_by_{0};  // connecting, greeting
  Micros ready_since_{0};
  Micros heard_at_{0};
  Micros earliest_ = kNever;  // no deadline in either queue is earlier
  std::vector<SocketAddress> addresses_;
  std::size_t address_at_ = 0;
  std::uint64_t dial_number_ = 0;
  std::uint32_t watched_ = 0;  // what epoll was told
  Failure last_failure_;
  bool has_failed_ = false;    // the last dial, or the last connection
  bool has_news_ = false;      // it failed otherwise than before
  bool is_kept_ = false;       // connected, though there be nothing to send
  bool has_password_ = false;  // it was greeted with one
  bool has_heard_ = false;     // anything on this connection
  bool is_retiring_ = false;   // connects anew when nothing is under way
  bool is_proven_ = false;     // a command was answered
  bool is_quiet_ = true;       // nothing is awaited since the last flush
  bool is_resp2_ = false;      // HELLO was refused
  std::string hello_refusal_;  // what it said then, until the greeting is over
  bool is_lost_ = false;       // while replies are read: stop

  Wire wire_;
  Queue queue_;    // on the connection
  Queue backlog_;  // waiting for one
  std::string in_;
  std::size_t in_at_ = 0;
  int lean_tries_ = 0;  // how often the reply at the front was too short to be read
  resp::ReplyParser parser_;
  std::vector<std::int64_t> integers_;
  std::vector<Farewell> farewells_;
  std::string command_;                // of the reply that is looked at
  std::vector<std::string> channels_;  // to be subscribed to
  std::vector<std::string> heard_;     // of those, on this connection
  std::string refusal_;                // why not all of them; empty: nothing is known to be wrong
  Micros ask_again_at_ = kNever;       // for those that were refused
  std::vector<std::int16_t> loading_;  // scripts whose SCRIPT LOAD is under way
  std::size_t greetings_left_ = 0;     // replies until the greeting is over
};

}  // namespace weir::redis
