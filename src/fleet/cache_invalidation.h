// Informs the other nodes of a fleet which cached denials are no longer valid, over a pub/sub channel of Redis.
//
//   invalidation.publish(name);        // permits of this key were refunded, or the key was reset
//
// A node caches denials only while it receives the messages of others and Redis accepts its own. A message has names,
// each with its length before it; or a star, for all names; or nothing, to test whether Redis accepts it. publish()
// and refusal() are for any thread, the others for the store's. Tested by tests/fleet_nodes_test.cc and
// tests/fleet_acl_test.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "fleet/key_memory.h"
#include "fleet/script_pipeline.h"
#include "redis/client.h"
#include "weir/clock.h"

namespace weir::fleet {

class CacheInvalidation final : private redis::Receiver {
 public:
  // Called with the reason when Redis refuses the channel, so that no denial is cached. An empty reason: it no longer
  // refuses. Runs on the store's thread; must not block.
  using OnRefused = std::function<void(std::string_view why)>;
  CacheInvalidation(KeyMemory& memory, OnRefused on_refused) : memory_(memory), on_refused_(std::move(on_refused)) {}

  void begin(ScriptPipeline& pipeline);
  // Sends what is due.
  void turn(Micros now);

  // Invalidates the cached denials of this key on every node.
  void publish(std::string_view name);
  // Why no denial is cached; empty if denials are cached, or if Redis is down.
  std::string refusal() const;

 private:
  // What the next messages must invalidate.
  struct Stale {
    std::vector<std::string> names{};
    bool is_all = false;
  };

  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void check_channel();
  void send(Micros now);
  void take(std::string_view message);

  KeyMemory& memory_;
  const OnRefused on_refused_;
  ScriptPipeline* pipeline_ = nullptr;
  std::string channel_;
  bool is_subscribed_ = false;
  bool can_publish_ = false;
  Micros send_at_{0};            // no message earlier; no instant retry after a refusal
  std::string publish_refusal_;  // why Redis refuses this node's messages
  std::atomic<bool> has_stale_{false};
  mutable base::Mutex mutex_;
  Stale stale_ GUARDED_BY(mutex_);
  std::string refusal_ GUARDED_BY(mutex_);
};

}  // namespace weir::fleet
