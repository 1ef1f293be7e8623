// The store's flags. See store_options.h.
#include "program/store_options.h"

#include "command/complain.h"

namespace weir {

void StoreOptions::add(CLI::App& app) {
  app.add_option("--store", store, "Where counts are kept")->type_name("URL")->capture_default_str();
  app.add_option("--keys", keys, "Room for so many live keys; 1000000, or what the state file has")
      ->type_name("N")
      ->check(whole_number_to(1'000'000'000));
  app.add_option("--memory", memory,
                 "Bytes of the whole table: for as many keys as fit; with --keys, the rest is for logs")
      ->type_name("BYTES")
      ->check(whole_number_to(kMemoryMax));
  app.add_option("--state", state, "Keep the state in this file: it survives any end of the server")->type_name("FILE");
}

Result<LimiterOptions> StoreOptions::limiter_options() const {
  if (store != "memory") {
    return fail(ErrorCode::invalid_argument,
                "--store: " + in_quotes(store) +
                    " is not a store that this server has; write memory, and --state FILE for one that lasts");
  }
  LimiterOptions options;
  options.keys = keys;
  options.memory = memory;
  options.file = state;
  return options;
}

}  // namespace weir
