// A request whose charges lie on several servers of a cluster: each part is charged, and if one denies, the others are
// taken back.
//
// Nobody is let through too much: a part counts from the moment it is charged. Who comes between charge and release may
// be denied for what is then taken back. Who crashes there leaves it charged, until it lapses. What servers do not
// answer, the node decides as one event, after the others: it charges nothing if one of them has denied. The id of a
// request is written last of all, so that only one that passes is remembered. Part of FleetStore; any thread. Tested by
// tests/fleet_nodes_test.cc and tests/fleet_faults_failover_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fleet/fleet_store.h"

namespace weir {

class FleetStore::Apart {
 public:
  explicit Apart(FleetStore& store) : store_(store) {}

  Result<Verdict> ask(ScriptRequest::What what, std::span<const Charge> charges, std::string_view id, Micros lasts);

 private:
  struct Part {
    std::vector<Charge> charges{};
    std::vector<std::size_t> places{};  // in the request
    std::vector<Decision> decisions{};
    std::vector<std::int64_t> reserved{};
    Question question{};
    Result<Verdict> verdict{Verdict{}};
    bool is_left = false;  // to this node: its server did not answer
    bool is_here = false;  // and it has decided
    bool is_charged_here = false;
  };

  void divide(ScriptRequest::What what, std::span<const Charge> charges, std::string_view id, Micros lasts);
  void ask_parts(std::size_t from, std::size_t to);
  void ask_whether_repeated(Part& part);
  std::vector<Charge> left_to_us() const;
  Result<Verdict> look_here() const;
  Result<Verdict> once_here(std::string_view id, Micros lasts);
  void decide_here(ScriptRequest::What what, std::string_view id, Micros lasts);
  bool is_denied() const;
  bool is_repeated() const;
  bool are_allowed() const;
  void release();
  void settle();
  Result<Verdict> put_together(std::size_t charges) const;

  FleetStore& store_;
  std::vector<Part> parts_;
};

}  // namespace weir
