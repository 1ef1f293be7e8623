// One Redis server: its connection, the commands in flight on it, and the commands that wait for it.
//
// A node dials when it has something to send or must stay connected. It greets the server, sends waiting commands and
// reads replies in order. It expires commands whose deadline has passed. After a lost connection it dials again, with
// growing waits. Its host, the Client, decides which address it dials and what happens to an error reply. One thread
// may use it. Tested by client_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire.h"
#include "redis/backoff.h"
#include "redis/command.h"
#include "redis/queue.h"
#include "redis/resolver.h"

namespace weir::redis {

class Node;

// State shared by all nodes of a client.
struct Shared {
  explicit Shared(base::redis::Target to, ClientOptions how)
      : target(std::move(to)), options(std::move(how)), dice(options.seed) {}

  struct Script {
    std::string text;
    std::string sha;
  };

  // Appends a command, or the call of its script.
  void encode(const Command& entry, std::span<const std::string_view> words, Queue& queue) const;

  base::redis::Target target;
  ClientOptions options;
  Dice dice;
  Counters counters{};
  base::Descriptor epoll{};
  Resolver resolver{};
  std::vector<Script> scripts{};
  std::shared_ptr<const net::TlsContext> tls{};
  Micros now{0};
};

class NodeHost {
 public:
  // It is time to dial: call dial() or cannot_dial(), now or later.
  virtual void on_dial_due(Node& node) = 0;
  virtual void on_ready(Node& node) = 0;
  // The connection is lost, or could not be made.
  virtual void on_lost(Node& node, const std::string& why) = 0;
  virtual void on_push(Node& node, const resp::Value& push) = 0;
  // An error reply to a command that is not answered yet. `command` is valid only during the call.
  virtual void on_refused(Node& node, const Command& entry, std::string_view bytes, std::string_view error) = 0;
  // When a command that waits for an unreachable node may be sent elsewhere; or kNever.
  virtual Micros reroute_at() const = 0;

 protected:
  ~NodeHost() = default;
};

// The role of a node, which decides how it is greeted.
enum class NodeRole : std::uint8_t {
  master,
  asked,     // asked for the cluster's map
  sentinel,  // has its own password, and neither scripts nor databases
  leaving,   // no longer a master; removed when nothing is in flight
};

class Node {
 public:
  Node(NodeHost& host, Shared& shared, std::uint64_t id, base::Endpoint endpoint, NodeRole role);
  ~Node();

  std::uint64_t id() const { return id_; }
  const base::Endpoint& endpoint() const { return endpoint_; }
  NodeRole role() const { return role_; }
  void set_role(NodeRole role) { role_ = role; }
  bool is_ready() const { return state_ == State::ready; }
  bool is_down() const { return has_failed_ && state_ != State::ready; }
  // Whether the last failure is new: there was a connection before it, or its reason differs from the previous one.
  bool has_new_failure() const { return has_new_failure_; }
  std::size_t in_flight() const { return queue_.size() + backlog_.size(); }

  // Appends a command, or answers it at once.
  void push(Command entry, std::span<const std::string_view> words);
  void push_bytes(Command entry, std::string_view bytes, bool is_asking);
  // Appends a command again, after a SCRIPT LOAD unless one is in flight.
  void push_reloaded(Command entry, std::string_view bytes);
  // Returns all commands that wait for a connection. The caller owns them from then on.
  Queue take_backlog() { return std::exchange(backlog_, {}); }

  void keep_connected(bool is_kept);
  void subscribe(const std::string& channel);
  bool has_channels() const { return !channels_.empty(); }
  void drop_channels();
  bool is_subscribed_to_all() const { return is_ready() && confirmed_.size() == channels_.size(); }
  const std::string& refusal_of_channels() const { return refusal_; }
  void ask_refused_channels();
  // Reconnects when everything in flight is answered.
  void retire();
  // Connects to another address at once. Commands already sent to the old one are answered with a fault.
  void move_to(base::Endpoint endpoint, const std::string& why);

  void dial(base::Endpoint endpoint);
  void cannot_dial(FaultKind kind, const std::string& why);
  void on_resolved(Resolved resolved);
  void on_events(std::uint32_t events);
  void turn();
  void flush();
  Micros due() const;
  // Answers everything. The node must not be used afterwards.
  void end();

 private:
  enum class State : std::uint8_t { idle, waiting, addressing, resolving, connecting, greeting, ready };
  struct FailedCommand {
    Callback done;
    bool was_sent;
    FaultKind kind;
    bool is_late = false;   // its deadline had passed already
    bool has_late = false;  // its reply is still expected, and wanted
  };
  struct Failure {
    FaultKind kind = FaultKind::disconnected;
    std::string text{};
  };

  // node.cc: dialing, and losing connections
  void start_dialing();
  void wait_until(Micros when);
  Micros give_up_at() const;
  void try_address();
  std::string why_not_dialled(std::string why) const;
  void connected();
  void lose(Failure failure);
  Micros dial_wait();
  void take_back_unsent();
  void answer_hopeless();
  bool is_hopeless(Micros deadline) const;
  std::unique_ptr<net::TlsStream> open_tls(std::string& failure);
  void watch();

  // greeting.cc
  void greet();
  void push_own(Purpose purpose, std::span<const std::string_view> words, int script = kNoScript);
  void load_scripts();
  void ask_channels();
  void note_channel(const resp::Value& value);
  void on_greeting(const Command& entry, const resp::Value& value);
  void on_hello_error(const resp::Value& value);
  void end_greeting();
  void refuse_channels_in_resp2();
  void refuse_greeting(FaultKind kind, const std::string& text);

  // node_io.cc: sending, reading, expiring
  bool admit(Command& entry);
  // Whether new commands go to this connection, and do not wait for the next one.
  bool is_sending() const { return state_ == State::ready && !is_retiring_; }
  void read();
  void read_replies();
  bool read_reply();
  bool take_reply(const resp::Value& value);
  void take_value(const Command& entry, const resp::Value& value);
  void take_integers();
  void count_reply(const Command& entry);
  void expire();
  static void deliver_late(const Command& entry, const Reply& reply);
  void report_failed(std::vector<FailedCommand>& failed, std::string_view text);
  bool is_subscribed_by(const resp::Value& push) const;
  Micros silent_at() const;
  void ping();
  Micros ping_at() const;

  NodeHost& host_;
  Shared& shared_;
  const std::uint64_t id_;
  base::Endpoint endpoint_;
  NodeRole role_;

  State state_ = State::idle;
  Backoff backoff_;
  Micros dial_at_{0};     // waiting: when to dial; otherwise the earliest time to dial
  Micros connect_by_{0};  // connecting, greeting
  Micros ready_since_{0};
  Micros received_at_{0};
  Micros earliest_ = kNever;  // lower bound of the deadlines in both queues
  std::vector<net::SocketAddress> addresses_;
  std::size_t address_at_ = 0;
  std::uint64_t dial_number_ = 0;
  std::uint32_t watched_ = 0;  // events registered with epoll
  Failure last_failure_;
  bool has_failed_ = false;       // the last dial or connection failed
  bool has_new_failure_ = false;  // and for another reason than the failure before it
  bool is_kept_ = false;          // stay connected even if there is nothing to send
  bool has_password_ = false;     // greeted with a password
  bool has_received_ = false;     // received any byte on this connection
  bool is_retiring_ = false;      // reconnect when nothing is in flight
  bool is_proven_ = false;        // a command was answered on this connection
  bool is_quiet_ = true;          // no reply has been due since the last flush
  bool is_resp2_ = false;         // HELLO was refused
  std::string hello_refusal_;     // the error of HELLO, until the greeting is done
  bool is_lost_ = false;          // the connection was lost while reading replies: stop

  net::Wire wire_;
  Queue queue_;    // sent or to be sent on this connection
  Queue backlog_;  // waiting for a connection
  std::string in_;
  std::size_t in_at_ = 0;
  int lean_tries_ = 0;  // how often the reply at the front was incomplete
  resp::ReplyParser parser_;
  std::vector<std::int64_t> integers_;
  std::vector<FailedCommand> failed_;
  std::string command_;                 // the command of the reply being processed
  std::vector<std::string> channels_;   // to be subscribed to
  std::vector<std::string> confirmed_;  // confirmed on this connection
  std::string refusal_;                 // why a channel is missing; empty if no reason is known
  Micros ask_again_at_ = kNever;        // for refused channels
  std::vector<int> loading_;            // scripts whose SCRIPT LOAD is in flight
  std::size_t greetings_left_ = 0;      // replies until the greeting is done
};

}  // namespace weir::redis
