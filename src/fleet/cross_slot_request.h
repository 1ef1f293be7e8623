// A request whose charges lie on several servers of a cluster, or in a slot that migrates. Each part is charged, and if
// one part denies, the others are refunded.
//
// This never admits too much, because a part counts from the moment it is charged. A request that arrives
// between charge and refund may be denied falsely. If the node crashes between the two, the part stays charged until
// it expires. Each part carries the unsynced charges of its keys. Last, the node itself decides the parts that servers
// did not answer: all or none. If a server has denied, the node charges nothing. It decides from its part of what Redis
// last said was left of each key, or by its share during a handover. A part that was sent and not answered in time is
// undone when its late reply arrives. The id of a request is written last, so that only an admitted request is
// remembered. Part of FleetStore; any thread. Tested by tests/fleet_nodes_test.cc, tests/fleet_faults_failover_test.cc
// and tests/fleet_seam_model_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fleet/fleet_store.h"

namespace weir::fleet {

class FleetStore::CrossSlotRequest {
 public:
  // Each part has the charges of one subject, or one charge: while a slot migrates, its keys are on two servers.
  enum class By : std::uint8_t { subject, charge };

  // `whole` itself is not sent: only its parts are.
  CrossSlotRequest(FleetStore& store, const ScriptRequest& whole, const ChargedHere& charged, By by = By::subject)
      : store_(store), whole_(whole), charged_(charged), by_(by) {}

  Result<Verdict> ask();
  // Returns `denial`, unless Redis admitted a request with this id before. The keys may be on one server or on several.
  Result<Verdict> ask_whether_repeated(Verdict denial);

 private:
  struct Part {
    std::vector<Charge> charges{};
    std::vector<std::size_t> places{};  // indexes in the request
    std::vector<Decision> decisions{};
    std::vector<std::int64_t> reserved{};
    ScriptRequest request{};
    Result<Verdict> verdict{Verdict{}};
    bool is_left = false;  // for this node to decide: its server did not answer
    bool is_here = false;  // and this node has decided
    bool is_charged_here = false;
    bool is_spared = false;  // decided from what was left, not by the share
  };
  struct Sent;

  void divide();
  Sent send(Part& part, std::vector<ScriptRequest>& requests);
  void run_parts(std::size_t from, std::size_t to);
  void ask_whether_repeated(Part& part);
  std::vector<Charge> undecided() const;
  std::vector<Charge> undecided(bool is_spared, bool was_charged) const;
  Result<Verdict> peek_share() const;
  Result<Verdict> once_here();
  Result<Verdict> admit_here(What what);
  std::optional<Verdict> decide_from_known();
  Result<Verdict> share(What what);
  void decide_here(What what);
  bool is_denied() const;
  bool is_repeated() const;
  bool are_allowed() const;
  void release();
  void release_here(const Part& part);
  void take_charged(std::size_t place) { charged_.places &= ~(std::uint32_t{1} << place); }
  void undo_later(const ScriptRequest& request);
  void settle();
  Result<Verdict> merge_verdicts() const;

  FleetStore& store_;
  const ScriptRequest& whole_;
  ChargedHere charged_;  // before, by the share, and not refunded since
  const By by_;
  FallbackStore::Moment spared_{}, shared_{};  // when parts were charged here, by decide_from_known() or by share()
  std::vector<Part> parts_;
};

}  // namespace weir::fleet
