// One thread's connection to Redis. It batches requests into as few calls as possible, and each gets a result by
// its deadline.
//
//   pipeline.submit(request, requester, now);   // false: it has failed already; else turn() reports the result
//   pipeline.flush(now);                        // once per loop iteration: sends together what was submitted
//   ... wait for pipeline.descriptor(), until pipeline.due() ...
//   pipeline.turn(now);                         // requester.on_done(request)
//
// A request is not copied: it stays with its caller until on_done(). Only when its deadline passes while it is in
// flight, the pipeline keeps a copy for the late reply. Requests for one place go into one call of the script, up to
// its bounds. The number of calls in flight is limited, and meanwhile the next requests queue. The queue is bounded: it
// has at most what the server can answer in half of a request's deadline. A request beyond that fails immediately, so
// the queued ones are answered in time. Each server has a circuit breaker. While it is open, or without a connection,
// requests fail immediately. Calls carry a deadline in the server's own time, which we learn from its replies, so a
// call that arrives late charges nothing. Belongs to one thread. Tested by script_pipeline_test.cc and
// tests/fleet_nodes_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fleet/breaker.h"
#include "fleet/doubt.h"
#include "fleet/handover.h"
#include "fleet/kept_request.h"
#include "fleet/pipeline_totals.h"
#include "fleet/script_call.h"
#include "redis/client.h"

namespace weir::fleet {

struct PipelineOptions {
  std::string prefix = "weir:";
  Micros deadline{15'000};            // of a request, from its submission
  std::size_t requests_max = 10'000;  // in flight or queued; beyond it, they fail immediately
  std::size_t calls_max = 2;          // in flight for one place
  BreakerOptions breaker{};
  // Redials often enough to use a server within a second of its return.
  redis::ClientOptions client{.connect_timeout = Micros{500'000}, .backoff_most = Micros{400'000}};
  std::shared_ptr<PipelineTotals> totals{};  // to which it adds its counts; null: none
  Doubt::Settle on_doubt{};                  // called when the outcome of a call in doubt is known
  Handover* handover = nullptr;              // begin() is called when a breaker opens; null: none
};

inline constexpr std::size_t kHalvedMin = 16;  // requests at once: more are sent as two calls

class ScriptPipeline final : private redis::Receiver {
 public:
  ScriptPipeline(const base::redis::Target& target, PipelineOptions options);
  ~ScriptPipeline();

  // Whether a request about a key in this slot would fail immediately. count_failed() counts one that was therefore
  // not submitted.
  bool would_fail(int slot) const;
  void count_failed(int slot);
  // False: it has already failed, and the requester is not called.
  bool submit(ScriptRequest& request, Requester& requester, Micros now);

  int descriptor() const { return client_.descriptor(); }
  Micros due() const;
  // `more_comes`: the owner will call it again right away.
  void flush(Micros now, bool more_comes = false);
  // Whether no call is in flight.
  bool is_idle() const { return calls_.size() == free_calls_.size(); }
  void turn(Micros now);
  // Every waiting request fails, and no new one is accepted.
  void close();

  // Whether the breaker of the server with this slot is open; whether any breaker is open.
  bool is_open(int slot) const;
  bool is_any_open() const;
  // Whether every request would fail immediately. Always false for a cluster, whose servers are seldom all down. Any
  // thread.
  bool is_down() const { return is_down_.load(std::memory_order_relaxed); }
  const base::PipelineCounts& counts() const { return counts_; }
  redis::Client& client() { return client_; }
  const PipelineOptions& options() const { return options_; }

  // The cluster slot of a subject's charges; -1 without a cluster.
  int slot_of(std::string_view subject) const;

 private:
  struct Call {
    explicit Call(const std::string& prefix) : script(prefix) {}
    ScriptCall script;
    std::vector<ScriptRequest*> requests;
    std::vector<std::unique_ptr<KeptRequest>> late;  // copies, after the requests have failed
    int slot = -1;
    Micros sent{0};
    bool is_given_up = false;  // its late reply is awaited
  };
  // Requests that may share a call: those of one slot, or all.
  struct Place {
    std::deque<ScriptRequest*> waiting;
    std::size_t calls = 0;  // in flight
    bool is_ready = false;  // it is in ready_
  };
  // A Redis server: the only one, or a master of a cluster.
  struct Server {
    Breaker breaker;
    bool has_offset = false;
    std::int64_t offset_us = 0;  // its clock minus the monotonic clock
    std::uint32_t tag = 0;       // of a key on it, for probes
    std::size_t requests = 0;    // queued or in flight
    // Its speed: over the last calls, the time it was busy and the number of requests it answered.
    Micros heard_at{0};
    std::int64_t busy_us = 0;
    std::int64_t answers = 0;
  };

  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void on_late(std::uint64_t tag, const redis::Reply& reply) override;
  void give_up(Call& call);
  void on_probe(std::uint64_t server, const redis::Reply& reply);
  void read(Call& call, const redis::Reply& reply);
  void fail(Call& call, const redis::Fault& fault);
  void send_separately(Call& call, const redis::Fault& fault);
  void enqueue(ScriptRequest& request);
  bool may_retry(ScriptRequest& request);
  void retry(std::span<ScriptRequest* const> requests);
  void send_full();
  void send_from(Place& place, int slot, bool more_comes);
  void finish(ScriptRequest& request, State state);
  void expire(Place& place, Micros until);
  void probe();
  void report_counts();
  void record_fault(std::string_view why);
  std::uint64_t server_of(int slot) const;
  Server& server(std::uint64_t number);
  bool is_too_much(std::uint64_t server) const;
  void learn(Server& server, const Call& call);
  bool is_overloaded(const Server& server) const;
  template <class Change>
  void change(std::uint64_t number, Change change, std::string_view why = {});
  void hand_over(std::uint64_t number);

  const PipelineOptions options_;
  const bool is_cluster_;
  std::unordered_map<std::uint64_t, Server> servers_;
  std::unordered_map<int, Place> places_;
  std::vector<int> ready_;  // slots with requests to send
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<std::size_t> free_calls_;
  std::size_t in_flight_ = 0;  // requests, queued or sent
  Micros now_{0};
  bool is_closed_ = false;
  std::atomic<bool> is_down_{false};
  bool has_left_ = false;            // the totals do not include it any more
  bool has_connected_ = false;       // since the last probe(): probes need not wait
  std::vector<std::uint64_t> lost_;  // nodes, since the last turn()
  std::string lost_why_;
  base::PipelineCounts counts_, reported_;
  redis::Client client_;  // the last: its destructor calls back for calls in flight, which uses all of the above
  const int script_;
};

}  // namespace weir::fleet
