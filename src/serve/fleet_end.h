// Adapts the fleet's store to a server's loop, as the backend its fibers wait for.
//
// Belongs to a loop and its thread. Tested by tests/server/fleet.sh.
#pragma once

#include <memory>

#include "fleet/fleet_store.h"
#include "server/loop/far_end.h"

namespace weir {

class FleetEnd final : public FarEnd {
 public:
  FleetEnd(FleetStore& store, Fibers& fibers) : way_(store.make_way(fibers)) {}

  int descriptor() const override { return way_->descriptor(); }
  void on_readable() override { way_->turn(); }
  void send() override { way_->flush(); }
  void abandon() override { way_->close(); }

 private:
  std::unique_ptr<LoopWay> way_;
};

}  // namespace weir
