// What a node of a fleet does by itself: it says that it lives and hears who else does, tells the others which denials
// are void and is told so, pays Redis back what it let through while that was away, tells it of permits in flight, and
// runs commands for others.
//
// It keeps house on the lane of a ThreadWay, by that one's thread; what is const, and publish(), are for any thread.
// Tested by tests/fleet_nodes_test.cc.
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

// A node that lives, as it was last heard of.
struct FleetNode {
  std::string id{};
  std::string says{};  // of itself
  Micros age{0};       // since then
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
  std::string id{};                     // no other node's
  std::function<std::string()> says{};  // see Keeper::set_says()
  Micros beat{1'000'000};
  Micros believed{5'000'000};  // so long after it was last heard of a node counts
  // Told why Redis refuses the channel by which nodes say that denials are void, so that none is believed; nothing: it
  // does not any more. On the thread of the lane; it must not wait.
  std::function<void(std::string_view why)> on_deaf{};
  // The same of the heartbeat: then the others do not know of this node, nor it of them.
  std::function<void(std::string_view why)> on_unheard{};
  // Receives strangers, when they have changed, and whether this node refuses to join because of them.
  std::function<void(const Strangers& strangers, bool is_barred)> on_strangers{};
  // Told which of how many nodes it is, when that has changed. On the same thread.
  std::function<void(Seat)> on_seat{};
};

class Keeper final : public Housekeeping, private redis::Receiver, private Asker {
 public:
  // What it keeps in order.
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
  // The others need not wait until it is not believed any more.
  void end(Lane& lane, Micros now) override;
  // Connections to Redis were lost or made anew: what was published meanwhile is not known.
  void miss() { has_missed_ = true; }

  // What it says of itself from now on: short, and asked for at every beat. When this returns, nobody asks the one
  // before any more.
  using Says = std::function<std::string()>;
  void set_says(Says says);

  // Charges for requests that this node denied: undone as soon as their server answers.
  Undos& undos() { return undos_; }
  std::uint64_t undone() const { return undos_.done(); }

  // Denials of this key are void for every node.
  void publish(std::string_view name);

  // As Redis told it last: so long ago that is heard(), in which their ages grow.
  std::vector<FleetNode> nodes() const;
  Micros heard() const;
  StoreCommands& commands() { return commands_; }
  SharedLog& log() { return log_; }
  // Of this machine's clock to that of Redis; since when it runs, by the monotonic clock.
  Micros skew() const { return Micros{skew_us_.load(std::memory_order_relaxed)}; }
  Micros began() const { return began_; }
  // Whether Redis is asked: it answered the last heartbeat, and no breaker is open.
  bool is_strict() const { return is_strict_.load(std::memory_order_relaxed); }
  // Why no denial is remembered; empty if all is well, or Redis is away.
  std::string deaf_why() const;
  // Why Redis refuses the heartbeat; empty if it does not.
  std::string unheard_why() const;
  std::uint64_t paid_back() const { return backs_.written(); }
  // Whether it has ever heard from Redis how many nodes there are. Until then its share is the whole limit.
  bool has_joined() const { return has_joined_.load(std::memory_order_relaxed); }
  Strangers strangers() const;
  // Whether it refuses to join because of strangers. It then decides as while Redis is unavailable, looks every
  // heartbeat whether they are gone, and joins when they are. A node that has joined stays.
  bool is_barred() const { return is_barred_.load(std::memory_order_relaxed); }

 private:
  // Hears what became of permits that Redis was told of.
  struct Teller final : Asker {
    explicit Teller(Keeper& its) : keeper(its) {}
    void on_done(Ask& ask) override;
    Keeper& keeper;
  };
  // Hears what became of charges that are taken back.
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
  Micros pay_at_{0};    // not earlier
  Micros wrote_at_{0};  // when the write-backs in flight were sent
  Micros making_{0};    // how long it took to make them
  std::size_t writes_ = 0;
  std::uint64_t crowded_ = 0;    // checks that found no room, when write-backs were last answered
  std::vector<FleetNode> held_;  // who was known when Redis was away
  Micros held_at_{0};            // their ages are of then
  Micros held_until_{0};         // so long they count
  bool has_missed_ = false;
  bool is_heard_ = false;                 // the last heartbeat was
  bool is_hearing_ = false;               // what others publish
  bool can_tell_ = false;                 // others would hear what this one publishes
  Micros news_at_{0};                     // not earlier; a refusal is not answered at once
  std::string mute_why_;                  // why Redis refuses what this one publishes
  std::size_t payments_ = 0;              // permits that Redis is being told of
  std::size_t unsynced_nodes_ = 0;        // of the others
  std::uint64_t beats_ = 0;               // answered
  bool is_beat_refused_ = false;          // by the last answer
  std::size_t looks_ = 0;                 // for strangers, in flight
  bool has_look_failed_ = false;          // one of them: nothing is known
  std::array<std::uint32_t, 2> found_{};  // strangers, by kOtherVersions
  std::int64_t redis_ms_ = 0;             // of the last one
  std::vector<Handover::Other> others_;
  Teller teller_{*this};
  Undoer undoer_{*this};
  Undos undos_;

  std::atomic<bool> has_news_{false};
  std::atomic<bool> is_strict_{false};
  std::atomic<bool> has_joined_{false};
  std::atomic<bool> is_barred_{false};
  std::atomic<std::int64_t> skew_us_{0};
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
