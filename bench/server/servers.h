// The servers of the comparison: Weir and its rivals, each started as its makers would for one core.
//
// Every function throws Missing where its server cannot be had. One thread.
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

// Without persistence; `address` is where it listens.
struct Redis {
  Process process;
  std::string address;
  std::string port;
};
Redis start_redis();
// The name by which EVALSHA knows bench/rivals/gcra.lua there.
std::string load_gcra(const Redis& redis);

struct Nginx {
  Process process;
  std::string address;
};
Nginx start_nginx(const Folder& folder);

}  // namespace weir::bench
