// The servers of the comparison: Weir and its rivals, each started for one core as its authors recommend.
//
// Every function throws Missing if its server is not available. One thread.
#pragma once

#include <string>

#include "kit/process.h"

namespace weir::bench {

// `weir serve` on free ports with the rules of bench/server/weir.yaml.
struct WeirOptions {
  std::uint64_t keys = 1'000'000;
  int threads = 1;
};
Process start_weir(const WeirOptions& options);

Process start_constant();
Process start_grpcpp();

// Without persistence.
struct Redis {
  Process process;
  std::string address;
  int port;
};
Redis start_redis();
// Loads bench/rivals/gcra.lua. Returns the name for EVALSHA.
std::string load_gcra(const Redis& redis);

struct Nginx {
  Process process;
  std::string address;
};
Nginx start_nginx(const Folder& folder);

}  // namespace weir::bench
