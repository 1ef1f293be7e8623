// Write-backs: unsynced charges on their way to Redis, in batches that are each applied once.
//
//   if (auto batch = backs.take(100, now)) ... send its charges with its id ...
//   backs.finish(*std::move(batch), {state, is_in_doubt, decisions, decided_us}, now);
//
// A batch that was sent and not answered is sent again with the same id and the same charges. The script applies each
// id only once, so it does not matter whether the first call was executed. Batches that go in one call share a
// ticket, and are sent again together. If a batch was not sent, its charges wait as before, and a refund still lowers
// them. The reply says what is left of each key. This node remembers that, and decides from there in the next outage.
// Any thread. Tested by write_back_test.cc and tests/fleet_seam_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "fleet/key_memory.h"
#include "fleet/script_call.h"
#include "fleet/unsynced_charges.h"

namespace weir::fleet {

// How long Redis remembers that a batch was applied.
inline constexpr Micros kWriteBackLasts{600'000'000};

// rest_after_write_back()
//
// How long a node waits after write-backs that took `took`. They take at most half of Redis's time, even if other
// nodes write back meanwhile. While Redis has more checks than it can decide, they take a twentieth. A check carries
// the unsynced charges of its key, and a check that Redis has no time for adds more of them.
inline Micros rest_after_write_back(Micros took, std::size_t unsynced_nodes, bool is_overloaded) {
  const std::int64_t parts = is_overloaded ? 20 : 2;
  return took * (parts * static_cast<std::int64_t>(1 + unsynced_nodes) - 1);
}

struct WriteBack {
  std::string id{};
  std::vector<UnsyncedCharge> unsynced{};
  std::vector<Charge> charges{};  // of the unsynced

  // The request for Redis. Redis's answer is written to `decisions`, one for each charge.
  ScriptRequest request(std::span<Decision> decisions) const {
    return {.what = What::write_back, .charges = charges, .id = id, .lasts = kWriteBackLasts, .decisions = decisions};
  }
  // The same, in one call with the next request.
  ScriptRequest tied_request(std::span<Decision> decisions) const {
    ScriptRequest tied = request(decisions);
    tied.is_tied = true;
    return tied;
  }
};

class WriteBacks {
 public:
  WriteBacks(UnsyncedCharges& unsynced, KeyMemory& memory);

  // The next batch, of at most `most` keys. A batch that was not answered comes first.
  std::optional<WriteBack> take(std::size_t most, Micros now);
  // take_for()
  //
  // The unsynced charges of the keys of a request that is about to be sent, to go in the same call. Bit i of
  // `unsynced_places` says that charge i may have some. `are_elsewhere`: some are in flight in another call, so Redis
  // may decide without them.
  struct ForRequest {
    std::optional<WriteBack> batch{};
    bool are_elsewhere = false;
  };
  ForRequest take_for(std::span<const Charge> charges, std::uint32_t unsynced_places, Micros now);

  struct Reply {
    State state = State::failed;
    bool is_in_doubt = false;  // it failed, but Redis may have executed it
    std::span<const Decision> decisions{};
    std::int64_t decided_us = 0;
    SharedTicket shared{};
  };
  static Reply reply_to(const ScriptRequest& request) {
    return {request.state, request.is_in_doubt, request.decisions, request.decided_us, request.shared};
  }
  void finish(WriteBack batch, const Reply& reply, Micros now);
  // Abandons all batches that were not answered: their charges wait again. At the end only.
  void give_up();

  bool is_empty() const { return unsynced_.is_empty() && waiting_.load() == 0; }
  std::uint64_t written() const { return written_.load(std::memory_order_relaxed); }  // permits

 private:
  std::optional<WriteBack> batch_of(std::vector<UnsyncedCharge> unsynced, Micros now);
  void send_again(WriteBack batch, const SharedTicket& shared = {});
  void count_waiting() REQUIRES(mutex_);

  UnsyncedCharges& unsynced_;
  KeyMemory& memory_;
  const std::string node_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::size_t> waiting_{0};
  base::Mutex mutex_;
  std::vector<WriteBack> again_ GUARDED_BY(mutex_);
  // Batches that shared a ticket are sent again as one batch, once all of them have come back.
  struct Part {
    WriteBack batch;
    std::uint16_t place = 0;
  };
  std::unordered_map<std::string, std::vector<Part>> parts_ GUARDED_BY(mutex_);  // by the id of the ticket
};

}  // namespace weir::fleet
