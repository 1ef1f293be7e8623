// Gives each job its turn. See background_work.h.
#include "fleet/background_work.h"

#include <algorithm>
#include <utility>

namespace weir::fleet {

BackgroundWork::BackgroundWork(MembershipOptions membership, CacheInvalidation::OnRefused on_refused,
                               const Parts& parts, std::function<void()> wake)
    : parts_(parts),
      membership_(std::move(membership), parts.fallback, parts.handover, [this] { return is_synced(); }),
      invalidation_(parts.memory, std::move(on_refused)),
      sync_(parts.backs, parts.unsynced_permits, parts.handover, invalidation_),
      log_(commands_, std::move(wake)) {}

void BackgroundWork::begin(ScriptPipeline& pipeline) {
  membership_.begin(pipeline);
  log_.begin(pipeline);
  invalidation_.begin(pipeline);
  sync_.begin(pipeline);
}

Micros BackgroundWork::turn(ScriptPipeline& pipeline, Micros now) {
  if (std::exchange(has_reconnected_, false)) {
    parts_.memory.drop_all();
    membership_.on_reconnect(now);
  }
  membership_.turn(now);
  invalidation_.turn(now);
  commands_.turn(pipeline, now);
  if (pipeline.is_any_open()) parts_.unsynced.tidy();
  const bool is_barred = membership_.is_barred();
  if (!is_barred) sync_.turn(now, membership_.unsynced_nodes());
  hand_over(pipeline, now);
  is_strict_.store(membership_.is_answered() && !pipeline.is_any_open() && !parts_.handover.is_on(),
                   std::memory_order_relaxed);
  const Micros beat_at = membership_.due();
  return is_barred ? beat_at : std::min(beat_at, sync_.due(now));
}

void BackgroundWork::end(Micros now) {
  membership_.leave(now);
  commands_.end();
}

void BackgroundWork::hand_over(ScriptPipeline& pipeline, Micros now) {
  if (!parts_.handover.is_on()) return;
  const bool is_down = pipeline.options().totals && pipeline.options().totals->is_down();
  parts_.handover.turn({.is_any_open = pipeline.is_any_open() || is_down || membership_.is_barred(),
                        .is_synced = is_synced(),
                        .beats = membership_.beats(),
                        .redis_ms = membership_.redis_ms(),
                        .others = membership_.others()},
                       now);
}

bool BackgroundWork::is_synced() const {
  return parts_.handover.is_none_pending() && parts_.unsynced.is_synced() && parts_.backs.is_empty() &&
         parts_.unsynced_permits.is_empty();
}

}  // namespace weir::fleet
