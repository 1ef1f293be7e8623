// A thread's way to Redis: questions in, as few calls as can be, answers out, each within its deadline.
//
//   Ask& ask = lane.make();
//   ask.fill(...);
//   lane.submit(ask, asker);        // done at once if there is no hope, else by turn()
//   lane.flush(now);                // once a turn of the owner: what was submitted goes out together
//   ... wait for lane.descriptor(), until lane.due() ...
//   lane.turn(now);                 // asker.on_done(ask)
//   lane.give(ask);                 // its room is used again
//
// Questions for one place become one call of the script, up to its bounds, and only so many calls are under way: while
// they are, the next questions gather. A breaker stands before every server; behind an open one nobody waits. Calls
// carry a deadline in the server's own time, which is learnt from its answers, so that what comes too late charges
// nothing. Belongs to one thread. Tested by lane_test.cc and tests/fleet_nodes_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleet/ask.h"
#include "fleet/breaker.h"
#include "redis/client.h"
#include "store/script_call.h"

namespace weir {

struct LaneOptions {
  std::string prefix = "weir:";
  Micros deadline{15'000};        // of a question, from its submission
  std::size_t asks_max = 10'000;  // under way; beyond it, they fail at once
  std::size_t calls_max = 2;      // under way for one place
  BreakerOptions breaker{};
  redis::ClientOptions client{.backoff_most = Micros{1'000'000}};  // when it is back, it is to be asked within a second
};

struct LaneCounts {
  std::uint64_t asks = 0;      // submitted
  std::uint64_t calls = 0;     // sent
  std::uint64_t answered = 0;  // asks
  std::uint64_t failed = 0;    // asks
  std::uint64_t refused = 0;   // asks: the server said no to the question itself
  std::uint64_t timeouts = 0;  // asks
  std::uint64_t late = 0;      // calls that the script refused
  std::uint64_t crowded = 0;   // asks that found no room
  std::uint64_t openings = 0;  // of the breaker
};

class Lane final : private redis::Receiver {
 public:
  Lane(const redis::Target& target, LaneOptions options);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Ask& make();
  void give(Ask& ask);
  // False: it is done already, and failed; the asker is not called.
  bool submit(Ask& ask, Asker& asker, Micros now);

  int descriptor() const { return client_.descriptor(); }
  Micros due() const;
  void flush(Micros now);
  void turn(Micros now);
  // Whoever waits is told that it failed; nothing is accepted any more.
  void close();

  // Whether a breaker is open: of the server that has the slot; of any.
  bool is_open(int slot) const;
  bool is_any_open() const;
  const LaneCounts& counts() const { return counts_; }
  redis::Client& client() { return client_; }
  const LaneOptions& options() const { return options_; }

  // The slot that a subject's charges have in a cluster; -1 if there is none.
  int slot_of(std::string_view subject) const;

 private:
  struct Call {
    explicit Call(const std::string& prefix) : script(prefix) {}
    ScriptCall script;
    std::vector<Ask*> asks;
    int slot = -1;
    Micros sent{0};
  };
  // Questions that one call can hold: of a slot, or all.
  struct Place {
    std::deque<Ask*> waiting;
    std::size_t calls = 0;  // under way
    bool is_ready = false;  // it is in ready_
  };
  // A server of Redis: one, or a master of a cluster.
  struct Server {
    Breaker breaker;
    bool has_offset = false;
    std::int64_t offset_us = 0;  // of its clock to the monotonic one
    std::uint32_t tag = 0;       // of a key that it has, to be probed by
  };

  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void on_probe(std::uint64_t server, const redis::Reply& reply);
  void read(Call& call, const redis::Reply& reply);
  void fail(Call& call, const redis::Fault& fault);
  void part(Call& call, const redis::Fault& fault);
  void enqueue(Ask& ask);
  void retry(Ask& ask);
  void send_from(Place& place, int slot);
  void finish(Ask& ask, Ask::State state);
  void expire();
  void probe();
  std::uint64_t server_of(int slot) const;
  Server& server(std::uint64_t number);
  void learn(Server& server, std::int64_t server_us, Micros sent);
  template <class Change>
  void change(Server& server, Change change);

  const LaneOptions options_;
  const bool is_cluster_;
  std::unordered_map<std::uint64_t, Server> servers_;
  std::unordered_map<int, Place> places_;
  std::vector<int> ready_;  // slots with questions to be sent
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::size_t> free_calls_;
  std::vector<std::unique_ptr<Ask>> asks_;
  std::vector<Ask*> free_asks_;
  std::size_t under_way_ = 0;
  Micros now_{0};
  bool is_closed_ = false;
  bool has_connected_ = false;  // since the last look: probes need not wait
  bool has_lost_ = false;       // the same
  LaneCounts counts_;
  redis::Client client_;  // the last: what is under way when it ends is answered to all of the above
  const int script_;
};

}  // namespace weir
