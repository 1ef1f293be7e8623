// The bounds' flags. See bound_options.h.
#include "program/bound_options.h"

#include "command/complain.h"

namespace weir {

void BoundOptions::add(CLI::App& app) {
  app.add_option("--connections", connections, "How many connections each port may have open")
      ->type_name("N")
      ->check(whole_number_to(1'000'000))
      ->capture_default_str();
  app.add_option("--buffers", buffers_mib, "How much unfinished requests and unread answers may hold, in all")
      ->type_name("MIB")
      ->check(whole_number_to(1'048'576))
      ->capture_default_str();
}

Result<void> BoundOptions::fill(ServerOptions& options) const {
  options.connections_max = connections;
  options.buffers_max = buffers_mib << 20;
  return {};
}

}  // namespace weir
