// The flags of what is told of clients. See usage_options.h.
#include "program/usage_options.h"

namespace weir {

void UsageOptions::add(CLI::App& app) {
  app.add_flag("--hash-keys", hash_keys, "Show the busiest keys as hashes, never users or addresses in clear");
}

GateOptions UsageOptions::gate_options() const { return {.key_names = hash_keys ? KeyNames::hashed : KeyNames::plain}; }

}  // namespace weir
