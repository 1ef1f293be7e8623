// The background work of a fleet node, on the pipeline and the thread of a ThreadWaiter.
//
// Each job has a class: membership.h, cache_invalidation.h, sync_sender.h, store_commands.h and shared_log.h. This one
// gives each of them its turn, and checks whether Redis can decide alone again (handover.h). begin(), turn() and end()
// are for the store's thread, the rest for any thread. Tested by tests/fleet_nodes_test.cc.
#pragma once

#include <atomic>
#include <functional>

#include "fleet/cache_invalidation.h"
#include "fleet/handover.h"
#include "fleet/key_memory.h"
#include "fleet/membership.h"
#include "fleet/shared_log.h"
#include "fleet/store_commands.h"
#include "fleet/sync_sender.h"
#include "fleet/unsynced_charges.h"
#include "fleet/unsynced_permits.h"
#include "fleet/write_back.h"

namespace weir::fleet {

class BackgroundWork {
 public:
  // The parts of the store that it works on.
  struct Parts {
    KeyMemory& memory;
    WriteBacks& backs;
    UnsyncedCharges& unsynced;
    UnsyncedPermits& unsynced_permits;
    FallbackStore& fallback;
    Handover& handover;
  };
  BackgroundWork(MembershipOptions membership, CacheInvalidation::OnRefused on_refused, const Parts& parts,
                 std::function<void()> wake);

  // Before the thread starts.
  void begin(ScriptPipeline& pipeline);
  // Called in every iteration. Returns when it must be called again, even if nothing happens.
  Micros turn(ScriptPipeline& pipeline, Micros now);
  void end(Micros now);
  // Connections to Redis were lost or made again: messages published meanwhile were missed.
  void on_reconnect() { has_reconnected_ = true; }

  Membership& membership() { return membership_; }
  const Membership& membership() const { return membership_; }
  CacheInvalidation& invalidation() { return invalidation_; }
  Undos& undos() { return sync_.undos(); }
  StoreCommands& commands() { return commands_; }
  SharedLog& log() { return log_; }
  // Whether Redis alone decides: it answered the last heartbeat, no breaker is open, and no handover is in progress.
  bool is_strict() const { return is_strict_.load(std::memory_order_relaxed); }

 private:
  bool is_synced() const;
  void hand_over(ScriptPipeline& pipeline, Micros now);

  const Parts parts_;
  Membership membership_;
  CacheInvalidation invalidation_;
  SyncSender sync_;
  StoreCommands commands_;
  SharedLog log_;
  bool has_reconnected_ = false;
  std::atomic<bool> is_strict_{false};
};

}  // namespace weir::fleet
