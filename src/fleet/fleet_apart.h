// A request whose charges lie on several servers of a cluster: each part is charged, and if one denies, the others are
// taken back.
//
// Nobody is let through too much: a part counts from the moment it is charged. Who comes between charge and release may
// be denied for what is then taken back. Who crashes there leaves it charged, until it lapses. Part of FleetStore; any
// thread. Tested by tests/fleet_nodes_test.cc.
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
  };

  void divide(ScriptRequest::What what, std::span<const Charge> charges, std::string_view id, Micros lasts);
  void ask_parts(std::size_t from, std::size_t to);
  bool are_allowed() const;
  void release();
  Result<Verdict> put_together(std::size_t charges) const;

  FleetStore& store_;
  std::vector<Part> parts_;
};

}  // namespace weir
