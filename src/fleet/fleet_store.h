// The store on Redis. The script decides every request there, by Redis's clock, so all nodes of a fleet share one
// limit. If Redis cannot be asked in time, the limit's fallback decides.
//
// Denials are cached until they can change. While a breaker is open, and until all nodes have written their charges
// back (handover.h), this node's share also decides. In a cluster, a request's charges may lie on several servers.
// Each part is charged, and if one part denies, the others are refunded. This never admits too much. A request that
// arrives in that moment may be denied falsely; the refunds are counted. Any thread. Tested by
// tests/fleet_nodes_test.cc and tests/server/fleet*.sh; docs/fleet.md is the guide.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/fleet_counts.h"
#include "base/redis_health.h"
#include "base/redis_url.h"
#include "fleet/background_work.h"
#include "fleet/doubt.h"
#include "fleet/fallback_store.h"
#include "fleet/handover.h"
#include "fleet/key_memory.h"
#include "fleet/saved_fleet_state.h"
#include "fleet/unsynced_charges.h"
#include "fleet/unsynced_permits.h"
#include "fleet/waiter.h"
#include "fleet/write_back.h"
#include "store/store.h"

namespace weir::fleet {

struct FleetStoreOptions {
  base::redis::Target target{};
  PipelineOptions pipeline{};
  std::size_t memory_keys = 65'536;       // for which Redis's last answer is remembered
  bool remembers_denials = true;          // caches denials until they can change
  std::size_t unsynced_keys = 100'000;    // that can have unsynced charges
  std::size_t unsynced_permits = 10'000;  // in flight that can be reported to it
  MembershipOptions membership{};
  CacheInvalidation::OnRefused on_invalidation_refused{};
  SavedFleetState kept{};                  // saved state of the previous process
  std::shared_ptr<Transport> transport{};  // null: Redis, at the target
  PipelineTotals::OnChange on_change{};    // called when Redis becomes unavailable, and when it is back
};

class FleetStore final : public store::Store {
 public:
  explicit FleetStore(FleetStoreOptions options);
  ~FleetStore() override;

  // For a loop that drives it. The store must outlive it.
  std::unique_ptr<FiberWaiter> make_waiter(base::Fibers& fibers);

  void use(store::MemoryStore& here) override;
  Result<Decision> check(const Charge& charge);
  Result<Decision> check(const Charge& charge, std::int64_t) override { return check(charge); }
  void check_many(std::span<const Charge> charges, std::int64_t, std::span<Result<Decision>> answers) override;
  Result<Ruling> decide_all(const Request& request, std::span<Decision> decisions,
                            std::span<std::int64_t> reserved) override;
  Result<Decision> preview(const Charge& charge, std::int64_t) override;
  Result<Decision> acquire(const Charge& charge, std::string_view id, std::int64_t) override;
  Result<bool> release(std::string_view key, std::string_view id, std::int64_t) override;
  Result<bool> reset(std::string_view key, std::int64_t) override;
  std::uint32_t nodes() const override { return rank().nodes; }

  // Returns the saved state for the next process. Call no other member afterwards.
  SavedFleetState close();

  // The health of each Redis server. Waits for them, at most half a second; not on a fiber.
  std::vector<base::RedisHealth> inspect();

  const base::FleetCounts& counts() const { return counts_; }
  const PipelineTotals& totals() const { return *options_.pipeline.totals; }
  BackgroundWork& background() { return background_; }
  UnsyncedCharges& unsynced_charges() { return unsynced_; }
  // Permits of a key that Redis has not confirmed.
  std::int64_t unsynced(const Charge& charge) {
    const KeyName name(charge);
    return unsynced_.cost_of({name, memory_.mark_of(name)}, *charge.limit, now());
  }
  WriteBacks& write_backs() { return backs_; }
  FallbackStore& fallback_store() { return fallback_; }
  Handover& handover() { return handover_; }
  // The outcome of a call in doubt has become known.
  void settle(const Doubt& doubt, const Doubt::Outcome& outcome);
  const FleetStoreOptions& options() const { return options_; }
  NodeRank rank() const { return fallback_.rank(); }

 private:
  class CrossSlotRequest;  // cross_slot_request.cc

  PipelineOptions pipeline_options();
  void run(std::span<ScriptRequest> requests);
  bool would_fail(const Charge& charge) const;
  void count_failed(const Charge& charge) const;
  bool fails_at_once(const Charge& charge) const;
  Decision from_memory(Decision denial);
  bool may_cache() const { return options_.remembers_denials; }
  std::optional<Verdict> known_denial(std::span<const Charge> charges, Micros now);
  int slot_of(std::string_view key) const;
  bool has_share(std::string_view key) const;
  bool is_shared(const Charge& charge) const;
  bool is_shared(std::span<const Charge> charges) const;
  std::optional<Decision> denial_or_start(const Charge& charge, KeyMark mark, KeyMemory::Asked& asked,
                                          std::size_t place, bool may_cache, bool is_shared = false);
  KeyMemory::Asked count(std::span<const Charge> charges);
  void miss(std::span<const Charge> charges, const KeyMemory::Asked& asked);
  Result<Verdict> ask(ScriptRequest& request);
  // What was charged to this node's share before Redis is asked.
  struct ChargedHere {
    std::uint32_t places = 0;     // bit i: charge i
    std::int64_t charged_us = 0;  // by the clock of this node's store
    std::uint16_t round = 0;      // of the shares, shortly before

    bool has(std::size_t place) const { return (places >> place & 1) != 0; }
  };
  // What this node's share returned, where it must also admit a request.
  struct ShareFirst {
    std::optional<Result<Verdict>> answer{};  // the complete answer, if Redis need not be asked
    ChargedHere charged{};
    bool is_unsent = false;  // do not send it: Redis was unavailable, so this node decides, even if Redis returns now
  };
  ShareFirst decide_by_share_first(ScriptRequest& request);
  // Whether this request was charged: admitted, and not for the second time.
  static bool is_newly_admitted(const Result<Verdict>& verdict) {
    return verdict && verdict->allowed && !verdict->repeated;
  }
  void refund_share(std::span<const Charge> charges, const ChargedHere& charged);
  Result<Verdict> decide_together(ScriptRequest& request, const ShareFirst& here);
  Micros now() const { return options_.transport ? options_.transport->now() : redis::steady_now(); }
  void wake() const {
    if (thread_) thread_->wake();
  }
  Result<Verdict> finish_commit(const ScriptRequest& request, Result<Verdict> verdict);
  bool is_down() const;
  Result<Decision> check_one(const Charge& charge);
  Result<Decision> check_here(const Charge& charge, Booking booking = Booking::unsynced,
                              FallbackStore::Moment* decided = nullptr);
  Result<Decision> check_both(const Charge& charge);
  Result<Decision> fall_back(const Charge& charge, KeyMark mark, Micros now, Booking booking);
  Result<Verdict> fall_back(const ScriptRequest& request, Micros now);
  void run_carrying(ScriptRequest& request, const KeyMemory::Asked& asked);
  Result<Decision> take_one(const ScriptRequest& request, KeyMark mark, const KeyMemory::Asked& asked, Micros now);
  Result<Verdict> take(const ScriptRequest& request, const KeyMemory::Asked& asked, Micros now);
  void drop(const Charge& charge);
  bool is_cross_slot(std::span<const Charge> charges) const;

  const FleetStoreOptions options_;
  const pid_t process_;
  const std::shared_ptr<const Clock> wall_ = make_system_clock();
  KeyMemory memory_;
  UnsyncedCharges unsynced_;
  UnsyncedPermits unsynced_permits_;
  FallbackStore fallback_;
  Handover handover_;
  WriteBacks backs_;
  std::vector<UnsyncedCharge> kept_ = options_.kept.charges;  // unsynced charges of the previous process, until use()
  std::optional<Handover::Pending> kept_pending_;             // while there are some in kept_
  BackgroundWork background_;
  base::FleetCounts counts_;
  std::unique_ptr<ThreadWaiter> thread_;  // the last: it uses all of the above
};

}  // namespace weir::fleet
