// The heartbeat of a fleet node, and what it learns from it: the other nodes, this node's rank, and Redis's clock.
//
// All nodes of one version of the key format register in one hash of Redis and read it at every heartbeat
// (heartbeat.lua). Before each heartbeat, a node looks for servers with another version. While there are any, a node
// that has not joined does not join: it decides as it does while Redis is unavailable, and takes its part of each
// limit. const functions and set_description() are for any thread, the others for the store's. Tested by
// tests/fleet_nodes_test.cc and tests/fleet_join_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "fleet/fallback_store.h"
#include "fleet/handover.h"
#include "fleet/script_pipeline.h"
#include "redis/client.h"
#include "weir/clock.h"

namespace weir::fleet {

// A live node, as of its last heartbeat.
struct FleetNode {
  std::string id{};
  std::string description{};  // its own
  Micros age{0};              // of that heartbeat
  bool is_self = false;
  bool is_synced = true;  // it reports no charges to write back after an outage
};

// Live servers with the same prefix whose keys in Redis have another version than kRedisVersion. They and this node do
// not see each other's keys, so they cannot share a limit.
struct OtherVersion {
  char version = 0;  // 0: there are none
  std::uint32_t nodes = 0;
  bool operator==(const OtherVersion&) const = default;
};
// "3 servers with the prefix weir: use version 1 of the key format, and this server uses version 2"; empty if none do.
std::string to_string(const OtherVersion& other, std::string_view prefix);

struct MembershipOptions {
  std::string id{};                         // unique in the fleet; empty: a random one
  std::function<std::string()> describe{};  // see set_description()
  Micros beat{1'000'000};
  Micros believed{5'000'000};  // how long after its last heartbeat a node counts as alive
  // These run on the store's thread and must not block.
  // Redis refuses the heartbeat for this reason, so this node and the others do not know of each other. An empty
  // reason: it no longer does.
  std::function<void(std::string_view why)> on_refused{};
  // The servers with another version have changed. `is_barred`: this node does not join because of them.
  std::function<void(const OtherVersion& other, bool is_barred)> on_other_version{};
  std::function<void(NodeRank)> on_rank{};
};

class Membership final : private redis::Receiver {
 public:
  // `is_synced` returns whether all charges of this node are in Redis.
  Membership(MembershipOptions options, FallbackStore& fallback, Handover& handover, std::function<bool()> is_synced);

  void begin(ScriptPipeline& pipeline);
  // Sends what is due.
  void turn(Micros now);
  // When the next heartbeat is due. Heartbeats come sooner while nodes wait for each other's reports, and after a
  // start.
  Micros due();
  // Leaves the fleet, so that the others need not wait until the heartbeat expires.
  void leave(Micros now) { beat(now, true); }
  // A Redis that was down may have lost the heartbeats, so the known nodes count while their heartbeats are valid.
  void on_reconnect(Micros now);

  // Short, and called at every heartbeat. When this returns, the previous function is never called again.
  void set_description(std::function<std::string()> describe);

  // The nodes as Redis reported them heard() ago; their ages include that time.
  std::vector<FleetNode> nodes() const;
  Micros heard() const;
  // Difference of this machine's clock from Redis's clock; when this node started, by the monotonic clock.
  Micros clock_skew() const { return Micros{clock_skew_us_.load(std::memory_order_relaxed)}; }
  Micros began() const { return began_; }
  // Why Redis refuses the heartbeat; empty if it does not.
  std::string refusal() const;
  OtherVersion other_version() const;
  // Whether Redis has ever reported how many nodes there are. Until then this node's share is the whole limit.
  bool has_joined() const { return has_joined_.load(std::memory_order_acquire); }
  // Whether it does not join because of servers with another version. A node that has joined stays.
  bool is_barred() const { return is_barred_.load(std::memory_order_relaxed); }

  // For the store's thread: the content of the last replies.
  bool is_answered() const { return is_answered_; }    // the last heartbeat
  std::uint64_t beats() const { return beats_; }       // answered heartbeats
  std::int64_t redis_ms() const { return redis_ms_; }  // Redis's clock at the last of them
  std::span<const Handover::Other> others() const { return others_; }
  std::size_t unsynced_nodes() const { return unsynced_nodes_; }  // among the others

 private:
  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void beat(Micros now, bool is_leaving);
  void look_for_other_versions(Micros now);
  void on_other_nodes(std::size_t place, const redis::Reply& reply);
  void set_other_version(const OtherVersion& other);
  void set_rank(NodeRank rank);
  void on_beat(const redis::Reply& reply);
  void read_nodes(const std::vector<resp::Value>& items);
  void add_held(std::vector<FleetNode>& nodes, Micros now) const;

  const MembershipOptions options_;
  FallbackStore& fallback_;
  Handover& handover_;
  const std::function<bool()> is_synced_;
  ScriptPipeline* pipeline_ = nullptr;
  std::string prefix_, hash_;
  int script_ = 0;
  Micros beat_at_{0};
  Micros beat_sent_at_{0};
  Micros beat_sent_{0};                   // by the wall clock
  std::vector<FleetNode> held_;           // known when the connection was lost
  Micros held_at_{0};                     // when their ages were taken
  Micros held_until_{0};                  // until then they count as alive
  bool is_answered_ = false;              // the last heartbeat
  bool is_beat_refused_ = false;          // by the last answer
  std::size_t unsynced_nodes_ = 0;        // among the others
  std::uint64_t beats_ = 0;               // answered heartbeats
  std::size_t looks_ = 0;                 // queries for other versions in flight
  bool has_look_failed_ = false;          // one of them failed: nothing is known
  std::array<std::uint32_t, 2> found_{};  // number of their nodes, by kOtherVersions
  std::int64_t redis_ms_ = 0;             // Redis's clock at the last heartbeat
  std::vector<Handover::Other> others_;

  std::atomic<bool> has_joined_{false};
  std::atomic<bool> is_barred_{false};
  std::atomic<std::int64_t> clock_skew_us_{0};
  const Micros began_ = redis::steady_now();
  const std::shared_ptr<const Clock> wall_ = make_system_clock();
  base::Mutex describe_mutex_;
  std::function<std::string()> describe_ GUARDED_BY(describe_mutex_);
  mutable base::Mutex mutex_;
  std::vector<FleetNode> nodes_ GUARDED_BY(mutex_);
  Micros heard_at_ GUARDED_BY(mutex_) = began_;
  std::string refusal_ GUARDED_BY(mutex_);
  OtherVersion other_version_ GUARDED_BY(mutex_);
};

}  // namespace weir::fleet
