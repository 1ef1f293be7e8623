// The background work of a fleet node: heartbeat and membership, invalidation of cached denials, write-back of
// charges made during an outage, reports of permits in flight, and commands for other threads.
//
// It runs on the lane and the thread of a ThreadWay. Const functions, and publish(), are for any thread. Tested by
// tests/fleet_nodes_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/handover.h"
#include "fleet/key_memory.h"
#include "fleet/lane.h"
#include "fleet/lent.h"
#include "fleet/local.h"
#include "fleet/owed.h"
#include "fleet/shared_log.h"
#include "fleet/store_commands.h"
#include "fleet/undos.h"
#include "fleet/way.h"
#include "fleet/write_back.h"
#include "redis/client.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir {

// A live node, as of its last heartbeat.
struct FleetNode {
  std::string id{};
  std::string says{};  // its own description
  Micros age{0};       // of that heartbeat
  bool is_self = false;
  bool is_synced = true;  // it reports no charges to write back after an outage
};

// Live servers with the same prefix whose keys in Redis have another version than kRedisVersion. They and this node do
// not see each other's keys, so they cannot share a limit.
struct Strangers {
  char version = 0;  // 0: there are none
  std::uint32_t nodes = 0;
  bool operator==(const Strangers&) const = default;
};
// "3 servers with the prefix weir: use version 1 of the key format, and this server uses version 2"; empty if none do.
std::string to_string(const Strangers& strangers, std::string_view prefix);

struct KeeperOptions {
  std::string id{};                     // unique in the fleet
  std::function<std::string()> says{};  // see Keeper::set_says()
  Micros beat{1'000'000};
  Micros believed{5'000'000};  // how long after its last heartbeat a node counts as alive
  // Called with the reason when Redis refuses the pub/sub channel for cache invalidation, so that no denial is
  // cached. An empty reason: it no longer refuses. Runs on the lane's thread; must not block.
  std::function<void(std::string_view why)> on_deaf{};
  // The same for the heartbeat: while it is refused, this node and the others do not know of each other.
  std::function<void(std::string_view why)> on_unheard{};
  // Called when the strangers have changed, and says whether this node refuses to join because of them.
  std::function<void(const Strangers& strangers, bool is_barred)> on_strangers{};
  // Called when this node's seat has changed. On the same thread.
  std::function<void(Seat)> on_seat{};
};

class Keeper final : public Housekeeping, private redis::Receiver, private Asker {
 public:
  // The parts of the store that it works on.
  struct House {
    KeyMemory& memory;
    WriteBacks& backs;
    Owed& owed;
    Lent& lent;
    Local& local;
    Handover& handover;
  };
  Keeper(KeeperOptions options, House house, std::function<void()> wake);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void begin(Lane& lane) override;
  Micros turn(Lane& lane, Micros now) override;
  // Leaves the fleet, so that the others need not wait until its heartbeat expires.
  void end(Lane& lane, Micros now) override;
  // Connections to Redis were lost or made again: messages published meanwhile were missed.
  void miss() { has_missed_ = true; }

  // Sets this node's description: short, and called for at every heartbeat. When this returns, the previous function
  // is never called again.
  using Says = std::function<std::string()>;
  void set_says(Says says);

  // Charges for requests that this node denied. They are undone as soon as their server answers.
  Undos& undos() { return undos_; }
  std::uint64_t undone() const { return undos_.done(); }

  // Invalidates the cached denials of this key on every node.
  void publish(std::string_view name);

  // The nodes as Redis reported them heard() ago; their ages include that time.
  std::vector<FleetNode> nodes() const;
  Micros heard() const;
  StoreCommands& commands() { return commands_; }
  SharedLog& log() { return log_; }
  // Difference of this machine's clock from Redis's clock; when this node started, by the monotonic clock.
  Micros clock_skew() const { return Micros{clock_skew_us_.load(std::memory_order_relaxed)}; }
  Micros began() const { return began_; }
  // Whether Redis alone decides: it answered the last heartbeat, no breaker is open, and no handover is in progress.
  bool is_strict() const { return is_strict_.load(std::memory_order_relaxed); }
  // Why no denial is cached; empty if denials are cached, or if Redis is down.
  std::string deaf_why() const;
  // Why Redis refuses the heartbeat; empty if it does not.
  std::string unheard_why() const;
  std::uint64_t synced_permits() const { return backs_.written(); }
  // Whether Redis has ever reported how many nodes there are. Until then this node's share is the whole limit.
  bool has_joined() const { return has_joined_.load(std::memory_order_relaxed); }
  Strangers strangers() const;
  // Whether it refuses to join because of strangers. It then decides as it does while Redis is unavailable. At every
  // heartbeat it checks whether they are gone, and joins when they are. A node that has joined stays.
  bool is_barred() const { return is_barred_.load(std::memory_order_relaxed); }

 private:
  // Receives the results of permits that were reported to Redis.
  struct Teller final : Asker {
    explicit Teller(Keeper& its) : keeper(its) {}
    void on_done(Ask& ask) override;
    Keeper& keeper;
  };
  // Receives the results of undos.
  struct Undoer final : Asker {
    explicit Undoer(Keeper& its) : keeper(its) {}
    void on_done(Ask& ask) override;
    Keeper& keeper;
  };
  void send_undos(Lane& lane, Micros now);
  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void on_done(Ask& ask) override;
  void beat(Lane& lane, Micros now, bool is_leaving);
  void look_for_strangers(Lane& lane, Micros now);
  void on_look(std::size_t place, const redis::Reply& reply);
  void meet(const Strangers& strangers);
  void sit(Seat seat);
  void listen(Lane& lane);
  void on_news_sent(const redis::Reply& reply);
  void on_beat(const redis::Reply& reply);
  void take_nodes(const std::vector<resp::Value>& items);
  void send_news(Lane& lane, Micros now);
  void take_news(std::string_view payload);
  void pay_back(Lane& lane, Micros now);
  void write_back(Lane& lane, Micros now);
  void hand_over(Lane& lane, Micros now);
  bool is_synced() const;
  void tell_of_permits(Lane& lane, Micros now);
  void hold(std::vector<FleetNode>& nodes, Micros now) const;

  const KeeperOptions options_;
  KeyMemory& memory_;
  WriteBacks& backs_;
  Owed& owed_;
  Lent& lent_;
  Local& local_;
  Handover& handover_;
  StoreCommands commands_;
  SharedLog log_;
  Lane* lane_ = nullptr;
  std::string prefix_, hash_, channel_;
  int script_ = 0;
  Micros beat_at_{0};
  Micros beat_sent_at_{0};
  Micros pay_at_{0};    // no write-back earlier
  Micros wrote_at_{0};  // when the write-backs in flight were sent
  Micros making_{0};    // how long it took to build them
  std::size_t writes_ = 0;
  std::uint64_t unsent_ = 0;     // checks that were not queued, when write-backs were last answered
  std::vector<FleetNode> held_;  // known when the connection was lost
  Micros held_at_{0};            // when their ages were taken
  Micros held_until_{0};         // until then they count as alive
  bool has_missed_ = false;
  bool is_heard_ = false;                 // Redis answered the last heartbeat
  bool is_hearing_ = false;               // it receives what others publish
  bool can_tell_ = false;                 // others would receive what this node publishes
  Micros news_at_{0};                     // no message earlier; no instant retry after a refusal
  std::string mute_why_;                  // why Redis refuses this node's messages
  std::size_t payments_ = 0;              // reports of permits in flight
  std::size_t unsynced_nodes_ = 0;        // among the others
  std::uint64_t beats_ = 0;               // answered heartbeats
  bool is_beat_refused_ = false;          // by the last answer
  std::size_t looks_ = 0;                 // queries for strangers in flight
  bool has_look_failed_ = false;          // one of them failed: nothing is known
  std::array<std::uint32_t, 2> found_{};  // number of strangers, by kOtherVersions
  std::int64_t redis_ms_ = 0;             // Redis's clock at the last heartbeat
  std::vector<Handover::Other> others_;
  Teller teller_{*this};
  Undoer undoer_{*this};
  Undos undos_;

  std::atomic<bool> has_news_{false};
  std::atomic<bool> is_strict_{false};
  std::atomic<bool> has_joined_{false};
  std::atomic<bool> is_barred_{false};
  std::atomic<std::int64_t> clock_skew_us_{0};
  const Micros began_ = redis::steady_now();
  const std::shared_ptr<const Clock> wall_ = make_system_clock();
  Micros beat_sent_{0};    // by the wall clock
  std::mutex says_mutex_;  // guards says_
  Says says_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::string> news_;
  std::vector<FleetNode> nodes_;
  Micros heard_at_ = began_;
  std::string deaf_why_;
  std::string unheard_why_;
  Strangers strangers_;
};

}  // namespace weir
