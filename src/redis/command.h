// A Redis command on its way, its reply, and the options and counts of a client.
//
// Plain values. Callbacks run on the thread of the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

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
  // Reports the outcome of a command with Command::wants_late whose deadline passed after it was sent
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

// The purpose of a command. All except the first are the client's own commands.
enum class Purpose : std::uint8_t {
  command,
  hello,
  auth,
  select,
  set_name,
  role,
  load_script,
  subscribe,
  asking,
  ping
};

// A command, from send() until its reply. Its bytes are in the queue of a node (queue.h).
struct Command {
  Callback done{};  // set by send()
  // It must have exactly one reply, so not SUBSCRIBE, MONITOR or CLIENT REPLY. For a script: the number of keys, the
  // keys, the arguments. Needed only during send().
  std::span<const std::string_view> words{};
  int script = kNoScript;  // as returned by add_script()
  int slot = kAnySlot;     // in a cluster, the owner of this slot gets the command
  int node = kAnyNode;     // or this node, by its index in masters(); never redirected
  Micros deadline = kNever;
  Reading reading = Reading::value;
  bool wants_late = false;  // its outcome after the deadline
  bool is_retried = true;   // in a cluster, retry after TRYAGAIN; else report it, and the caller splits the command

  // The client's own.
  Purpose purpose = Purpose::command;
  FaultKind refusal = FaultKind::timeout;  // why it was retried last, if it was
  std::uint8_t redirects = 0;
  bool is_pinned = false;    // must go to its node
  bool is_answered = false;  // its deadline has passed; the reply is dropped
  bool is_reloaded = false;  // its script was reloaded for it
  std::size_t bytes = 0;     // of the encoded command
};

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
  std::uint64_t late_replies = 0;  // came after the deadline
  std::uint64_t timeouts = 0;
  std::uint64_t redirects = 0;
  std::uint64_t retries = 0;  // after TRYAGAIN, CLUSTERDOWN, LOADING
  std::uint64_t refreshes = 0;
  std::uint64_t script_loads = 0;
};

// A known master.
struct NodeState {
  int index = 0;  // for Command::node; valid until the map changes
  std::string address{};
  bool is_connected = false;
  std::size_t in_flight = 0;
};

}  // namespace weir::redis
