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
// they are, the next questions gather. No more gather than the server can answer in half of the time that they have:
// whoever comes when it has more to do than it can is refused at once, and the others do not wait in vain. A breaker
// stands before every server; behind an open one, or without a connection, nobody waits. Calls carry a deadline in the
// server's own time, which is learnt from its answers, so that what comes too late charges nothing. Belongs to one
// thread. Tested by lane_test.cc and tests/fleet_nodes_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleet/ask.h"
#include "fleet/breaker.h"
#include "fleet/handover.h"
#include "fleet/lane_totals.h"
#include "redis/client.h"
#include "store/script_call.h"

namespace weir {

struct LaneOptions {
  std::string prefix = "weir:";
  Micros deadline{15'000};        // of a question, from its submission
  std::size_t asks_max = 10'000;  // under way; beyond it, they fail at once
  std::size_t calls_max = 2;      // under way for one place
  BreakerOptions breaker{};
  // What is lost is dialled so often that a server that is back is asked within a second.
  redis::ClientOptions client{.connect_timeout = Micros{500'000}, .backoff_most = Micros{400'000}};
  std::shared_ptr<LaneTotals> totals{};  // that it adds to; null: none
  Doubt::Settle on_doubt{};              // a call that was given up: it is known now what came of it
  Handover* handover = nullptr;          // begins when a breaker opens; null: none
};

inline constexpr std::size_t kHalvedMin = 16;  // questions at once: more go in two calls

class Lane final : private redis::Receiver {
 public:
  Lane(const redis::Target& target, LaneOptions options);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Ask& make();
  void give(Ask& ask);
  // Whether a question about a key in this slot would fail at once; counts one that was therefore not submitted.
  bool would_fail(int slot) const;
  void count_failed(int slot);
  // False: it is done already, and failed; the asker is not called.
  bool submit(Ask& ask, Asker& asker, Micros now);

  int descriptor() const { return client_.descriptor(); }
  Micros due() const;
  // `more_comes`: it is called again at once.
  void flush(Micros now, bool more_comes = false);
  // Nothing was sent that is not answered.
  bool is_idle() const { return calls_.size() == free_calls_.size(); }
  void turn(Micros now);
  // Whoever waits is told that it failed; nothing is accepted any more.
  void close();

  // Whether a breaker is open: of the server that has the slot; of any.
  bool is_open(int slot) const;
  bool is_any_open() const;
  // Whether all that is asked would fail at once. Of one server; those of a cluster are seldom all away. Any thread.
  bool is_away() const { return is_away_.load(std::memory_order_relaxed); }
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
    bool is_given_up = false;  // but what came of it will be known
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
    std::size_t asks = 0;        // waiting for it or under way
    // How fast it answers: over the last calls, the time that it was busy with and the questions that it answered.
    Micros heard_at{0};
    std::int64_t busy_us = 0;
    std::int64_t answers = 0;
  };

  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void on_late(std::uint64_t tag, const redis::Reply& reply) override;
  void give_up(Ask& ask);
  void on_probe(std::uint64_t server, const redis::Reply& reply);
  void read(Call& call, const redis::Reply& reply);
  void fail(Call& call, const redis::Fault& fault);
  void part(Call& call, const redis::Fault& fault);
  void enqueue(Ask& ask);
  bool may_retry(Ask& ask);
  void retry(std::span<Ask* const> asks);
  void send_full();
  void send_from(Place& place, int slot, bool more_comes);
  void finish(Ask& ask, Ask::State state);
  void expire(Place& place, Micros until);
  void probe();
  void tell();
  void blame(std::string_view why);
  std::uint64_t server_of(int slot) const;
  Server& server(std::uint64_t number);
  bool is_too_much(std::uint64_t server) const;
  void learn(Server& server, const Call& call);
  bool is_crowded(const Server& server) const;
  template <class Change>
  void change(std::uint64_t number, Change change, std::string_view why = {});
  void hand_over(std::uint64_t number);

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
  std::atomic<bool> is_away_{false};
  bool has_left_ = false;            // it is not counted among the totals any more
  bool has_connected_ = false;       // since the last look: probes need not wait
  std::vector<std::uint64_t> lost_;  // the same: nodes
  std::string lost_why_;
  LaneCounts counts_, told_;
  redis::Client client_;  // the last: what is under way when it ends is answered to all of the above
  const int script_;
};

}  // namespace weir
