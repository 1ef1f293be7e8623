// Sends Redis what a node did without it: write-backs of unsynced charges, permits in flight, and undos of charges for
// requests that the node denied.
//
// A few calls at a time, with pauses, so that no check waits long for them (write_back.h). The store's thread calls it;
// undos() and what it refers to are for any thread. Tested by tests/fleet_faults_settle_test.cc and
// tests/fleet_seam_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "fleet/cache_invalidation.h"
#include "fleet/handover.h"
#include "fleet/script_pipeline.h"
#include "fleet/undos.h"
#include "fleet/unsynced_permits.h"
#include "fleet/write_back.h"
#include "weir/clock.h"

namespace weir::fleet {

class SyncSender final : private Requester {
 public:
  SyncSender(WriteBacks& backs, UnsyncedPermits& permits, Handover& handover, CacheInvalidation& invalidation)
      : backs_(backs), permits_(permits), handover_(handover), invalidation_(invalidation) {}

  void begin(ScriptPipeline& pipeline) { pipeline_ = &pipeline; }
  // Sends what is due. `unsynced_nodes`: how many other nodes write back as well.
  void turn(Micros now, std::size_t unsynced_nodes);
  // When turn() must be called again.
  Micros due(Micros now) const;

  // Charges for requests that this node denied. They are undone as soon as their server answers.
  Undos& undos() { return undos_; }

 private:
  using OnResult = std::function<void(const ScriptRequest&)>;
  // A request, and what to do with its result.
  class Task;

  void on_done(ScriptRequest& request) override;
  bool submit(std::unique_ptr<Task> task, OnResult on_result, Micros now);
  void send_undos(Micros now);
  void send_permits(Micros now);
  void release(const UnsyncedPermit& permit);
  void send_write_backs(Micros now);
  void on_written(WriteBack batch, const ScriptRequest& request);

  WriteBacks& backs_;
  UnsyncedPermits& permits_;
  Handover& handover_;
  CacheInvalidation& invalidation_;
  ScriptPipeline* pipeline_ = nullptr;
  Undos undos_;
  std::size_t writes_ = 0;          // write-backs in flight
  std::size_t reports_ = 0;         // of permits, in flight
  std::size_t unsynced_nodes_ = 0;  // among the others
  std::uint64_t unsent_ = 0;        // checks that were not queued, when write-backs were last answered
  Micros write_at_{0};              // no write-back earlier
  Micros wrote_at_{0};              // when the write-backs in flight were sent
  Micros making_{0};                // how long it took to build them
};

}  // namespace weir::fleet
