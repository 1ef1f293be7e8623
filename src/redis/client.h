// A client of Redis for one thread, which it never blocks: one server, one behind Sentinel, or a Cluster.
//
//     Client client(*parse_url("redis+cluster://10.0.0.1,10.0.0.2"), {});
//     client.send({.words = words, .slot = slot_of(key), .deadline = now + Micros{15'000}}, {&receiver, 7});
//     client.flush(now);                          // once a turn of the owner: all that was sent goes out together
//     ... epoll or poll: wait for client.descriptor() to be readable, until client.due() ...
//     client.turn(steady_now());                  // receiver.on_reply(7, reply)
//
// It connects when told or at the first command, and again by itself. A command is answered exactly once, by turn(), by
// the destructor, or at once by send() if there is no hope for it. All times are steady_now()'s. One thread; callbacks
// come on it and may send(), but not turn(), flush() or destroy. Tested by client_test.cc, cluster_test.cc and
// sentinel_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis/fault.h"
#include "redis/slot.h"
#include "redis/url.h"
#include "resp/reply.h"
#include "weir/clock.h"

namespace weir::redis {

inline constexpr Micros kNever = Micros::max();
inline constexpr int kAnySlot = -1;
inline constexpr int kAnyNode = -1;
inline constexpr int kNoScript = -1;

// What the machine's monotonic clock shows, for those who drive a client.
inline Micros steady_now() { return std::chrono::duration_cast<Micros>(read_stopwatch()); }

// How a reply is wanted. An integer, an array of integers, or one of arrays of integers, comes as integers, one behind
// the other and without an allocation, if that is asked for; everything else, and they too if not, as a value.
enum class Reading : std::uint8_t { value, integers };

// All that it points to holds as long as the call that brings it.
struct Reply {
  const Fault* fault = nullptr;
  const resp::Value* value = nullptr;
  std::span<const std::int64_t> integers{};

  bool is_ok() const { return fault == nullptr; }
};

class Receiver {
 public:
  virtual void on_reply(std::uint64_t tag, const Reply& reply) = 0;
  // What came of a command with Order::wants_late whose deadline passed after it was sent (Fault::has_late): its reply,
  // or a fault if the connection broke before that. Once, after on_reply().
  virtual void on_late(std::uint64_t /*tag*/, const Reply& /*reply*/) {}

 protected:
  ~Receiver() = default;
};

// Who is told, and of what; nobody, if there is no receiver. It must live until then.
struct Callback {
  Receiver* receiver = nullptr;
  std::uint64_t tag = 0;
};

struct Order {
  // The command, one that has one reply (not SUBSCRIBE, MONITOR or CLIENT REPLY); of a script, what follows its name:
  // the number of keys, keys, arguments.
  std::span<const std::string_view> words;
  int script = kNoScript;  // of add_script()
  int slot = kAnySlot;     // in a cluster, who has it gets the command
  int node = kAnyNode;     // or this one, by its index in masters(); it is not sent elsewhere
  Micros deadline = kNever;
  Reading reading = Reading::value;
  bool wants_late = false;
  bool is_retried = true;  // in a cluster, after TRYAGAIN; else it is answered with that, and the caller splits it
};

// Answered: the receiver has been called already, with a fault.
enum class Sent : std::uint8_t { accepted, answered };

// What happens to connections, for the owner's log.
struct Event {
  enum class Kind : std::uint8_t {
    connected,  // and greeted: commands pass
    lost,       // or could not be made; the text says why, and only what is new is told
    moved,      // the master is another, or the cluster's map has changed
  };
  Kind kind = Kind::connected;
  std::string address{};
  std::string text{};
  std::uint64_t node = 0;  // by the number that owner_of() gives; 0: none that has slots or data, such as a sentinel
};

struct ClientOptions {
  std::string name = "weir";  // in CLIENT LIST
  Micros connect_timeout{1'000'000};
  Micros reach_timeout{250'000};   // of that, to be heard of at all: a lost packet is sent again after a second
  Micros silence{1'000'000};       // nothing heard for so long, though something is awaited: a new connection
  Micros backoff_first{50'000};    // between two dials: anything up to this, which doubles
  Micros backoff_most{5'000'000};  // up to that
  // If it is there, what it makes of such a wait counts: whoever knows others can part the time with them.
  std::function<Micros(Micros)> spread{};
  Micros sentinel_timeout{300'000};   // for one sentinel to answer
  Micros refresh_gap{100'000};        // between two looks at the cluster's map
  Micros refresh_period{60'000'000};  // between two that nothing asks for
  Micros subscribe_gap{5'000'000};    // a server that refuses a channel is asked again after so long
  std::size_t commands_max = 16'384;  // waiting and under way, per node
  std::size_t bytes_max = 8U << 20;   // of them, per node
  std::uint64_t seed = 0;             // of the dice; 0: nobody knows
  std::function<void(const Event&)> on_event{};
};

struct Counters {
  std::uint64_t dials = 0;
  std::uint64_t connects = 0;  // dials that came to a greeted connection
  std::uint64_t failures = 0;  // dials that did not
  std::uint64_t lost = 0;      // connections, once greeted
  std::uint64_t commands = 0;
  std::uint64_t replies = 0;       // that somebody awaited
  std::uint64_t late_replies = 0;  // dropped, since their deadline had passed
  std::uint64_t timeouts = 0;
  std::uint64_t redirects = 0;
  std::uint64_t retries = 0;  // after TRYAGAIN, CLUSTERDOWN, LOADING
  std::uint64_t refreshes = 0;
  std::uint64_t script_loads = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

// A master that is known.
struct NodeState {
  int index = 0;  // for Order::node; holds until the map changes
  std::string address{};
  bool is_connected = false;
  std::size_t in_flight = 0;
};

class Core;

class Client {
 public:
  explicit Client(Target target, ClientOptions options = {});
  ~Client();  // whatever is under way is answered: disconnected
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Every connection knows it before any command passes. The answer goes into Order::script.
  int add_script(std::string text);

  // What is published on a channel from now on, on some node of a cluster; resubscribed after each reconnect. Needs
  // RESP3, which every Redis from 6 on speaks.
  using Subscriber = std::function<void(std::string_view payload)>;
  void subscribe(std::string channel, Subscriber subscriber);

  // Whether every channel is heard now. What was published before it was is missed, also between two connections.
  struct Hearing {
    bool is_sure = false;
    std::string_view refusal{};  // why a server does not let us, by its last word; holds until the next turn
  };
  Hearing hearing() const;

  // Connects, and keeps connected, without waiting for a command.
  void connect();

  Sent send(const Order& order, Callback done);
  void flush(Micros now);

  int descriptor() const;  // epoll's: readable when turn() has something to do
  Micros due() const;      // when turn() is to be called though nothing is readable; kNever
  void turn(Micros now);

  const Counters& counters() const;
  std::vector<NodeState> masters() const;
  // Who has the slot, as far as is known: a number that no other node ever has; 0 if nobody is known.
  std::uint64_t owner_of(int slot) const;

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace weir::redis
