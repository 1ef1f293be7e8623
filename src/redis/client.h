// A non-blocking Redis client for one thread. It connects to a single server, to a master behind Sentinel, or to a
// Cluster.
//
//     Client client(*parse_url("redis+cluster://10.0.0.1,10.0.0.2"), {});
//     client.send({.words = words, .slot = slot_of(key), .deadline = now + Micros{15'000}}, {&receiver, 7});
//     client.flush(now);                          // once per loop iteration: sends all pending commands together
//     ... epoll or poll: wait for client.descriptor() to be readable, until client.due() ...
//     client.turn(steady_now());                  // receiver.on_reply(7, reply)
//
// It connects on connect() or at the first command, and reconnects by itself. Each command is answered exactly once:
// by turn() or flush(), by the destructor, or by send() itself if the command cannot succeed. All times are those of
// steady_now(). One thread may use a client. Callbacks run on that thread. They may call send(), but not turn() or
// flush(), and must not destroy the client. Tested by client_test.cc, cluster_test.cc and sentinel_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/redis_url.h"
#include "redis/fault.h"
#include "redis/slot.h"
#include "resp/reply.h"
#include "weir/clock.h"

namespace weir::redis {

inline constexpr Micros kNever = Micros::max();
inline constexpr int kAnySlot = -1;
inline constexpr int kAnyNode = -1;
inline constexpr int kNoScript = -1;

// The time of the machine's monotonic clock, for code that drives a client.
inline Micros steady_now() { return std::chrono::duration_cast<Micros>(read_stopwatch()); }

// How to deliver a reply. With `integers`, an integer, an array of integers, or an array of such arrays is delivered
// as consecutive integers without an allocation. Every other reply is delivered as a value.
enum class Reading : std::uint8_t { value, integers };

// The members point to data that is valid only during the callback.
struct Reply {
  const Fault* fault = nullptr;
  const resp::Value* value = nullptr;
  std::span<const std::int64_t> integers{};

  bool is_ok() const { return fault == nullptr; }
};

class Receiver {
 public:
  virtual void on_reply(std::uint64_t tag, const Reply& reply) = 0;
  // Reports the outcome of a command with Order::wants_late whose deadline passed after it was sent
  // (Fault::has_late): its reply, or a fault if the connection broke first. Called once, after on_reply().
  virtual void on_late(std::uint64_t /*tag*/, const Reply& /*reply*/) {}

 protected:
  ~Receiver() = default;
};

// Who receives the reply. A null receiver discards it. The receiver must live until then.
struct Callback {
  Receiver* receiver = nullptr;
  std::uint64_t tag = 0;
};

struct Order {
  // The command. It must have exactly one reply, so not SUBSCRIBE, MONITOR or CLIENT REPLY. For a script: the number
  // of keys, the keys, the arguments.
  std::span<const std::string_view> words;
  int script = kNoScript;  // as returned by add_script()
  int slot = kAnySlot;     // in a cluster, the owner of this slot gets the command
  int node = kAnyNode;     // or this node, by its index in masters(); never redirected
  Micros deadline = kNever;
  Reading reading = Reading::value;
  bool wants_late = false;
  bool is_retried = true;  // in a cluster, retry after TRYAGAIN; else report it, and the caller splits the command
};

// answered: the receiver was called already, with a fault.
enum class Sent : std::uint8_t { accepted, answered };

// A change of a connection, for the caller's log.
struct Event {
  enum class Kind : std::uint8_t {
    connected,  // and greeted, so commands can be sent
    lost,       // or could not be made; `text` says why; repeated failures for the same reason are not reported
    moved,      // the master is another server, or the cluster's map has changed
  };
  Kind kind = Kind::connected;
  std::string address{};
  std::string text{};
  std::uint64_t node = 0;  // the number that owner_of() returns; 0 for a node without data, such as a sentinel
};

struct ClientOptions {
  std::string name = "weir";  // name in CLIENT LIST
  Micros connect_timeout{1'000'000};
  Micros reach_timeout{250'000};   // part of it for TCP to connect; a lost packet is sent again after a second
  Micros silence{1'000'000};       // without any bytes for this long, although a reply is due: reconnect
  Micros backoff_first{50'000};    // wait before a reconnect: random, up to this, which doubles
  Micros backoff_most{5'000'000};  // up to this
  // If set, it replaces each drawn wait, so that clients who know of each other can divide the time among them.
  std::function<Micros(Micros)> spread{};
  Micros sentinel_timeout{300'000};   // for one sentinel to reply
  Micros refresh_gap{100'000};        // minimum between two requests for the cluster's map
  Micros refresh_period{60'000'000};  // between two requests without a cause
  Micros subscribe_gap{5'000'000};    // before asking again a server that refused a channel
  std::size_t commands_max = 16'384;  // waiting and in flight, per node
  std::size_t bytes_max = 8U << 20;   // the size of those commands, per node
  std::uint64_t seed = 0;             // of the random generator; 0: random
  std::function<void(const Event&)> on_event{};
};

struct Counters {
  std::uint64_t dials = 0;
  std::uint64_t connects = 0;  // dials that led to a greeted connection
  std::uint64_t failures = 0;  // dials that did not
  std::uint64_t lost = 0;      // greeted connections that were lost
  std::uint64_t commands = 0;
  std::uint64_t replies = 0;       // delivered to a receiver
  std::uint64_t late_replies = 0;  // came after the deadline
  std::uint64_t timeouts = 0;
  std::uint64_t redirects = 0;
  std::uint64_t retries = 0;  // after TRYAGAIN, CLUSTERDOWN, LOADING
  std::uint64_t refreshes = 0;
  std::uint64_t script_loads = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

// A known master.
struct NodeState {
  int index = 0;  // for Order::node; valid until the map changes
  std::string address{};
  bool is_connected = false;
  std::size_t in_flight = 0;
};

class Core;

class Client {
 public:
  explicit Client(Target target, ClientOptions options = {});
  ~Client();  // answers all unanswered commands: disconnected
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Loads a script on every connection before any command. The result is for Order::script.
  int add_script(std::string text);

  // Calls `subscriber` for each message that is published on a channel from now on, in a cluster on any node.
  // Resubscribes after each reconnect. Needs RESP3, which every Redis since version 6 supports.
  using Subscriber = std::function<void(std::string_view payload)>;
  void subscribe(std::string channel, Subscriber subscriber);

  // Whether every channel is subscribed now. Messages published before that, or between two connections, are missed.
  struct Hearing {
    bool is_sure = false;
    std::string_view refusal{};  // why a server refuses the subscription, as it last said; valid until the next turn()
  };
  Hearing hearing() const;

  // Connects and stays connected, without waiting for a command.
  void connect();

  Sent send(const Order& order, Callback done);
  void flush(Micros now);

  int descriptor() const;  // an epoll descriptor; readable when turn() has work
  Micros due() const;      // when to call turn() even if nothing is readable; or kNever
  void turn(Micros now);

  const Counters& counters() const;
  std::vector<NodeState> masters() const;
  // The known owner of a slot, as a number that is unique to that node; 0 if unknown.
  std::uint64_t owner_of(int slot) const;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace weir::redis
