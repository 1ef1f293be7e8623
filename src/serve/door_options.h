// The flags of `weir serve` for listeners and threads, the password of Redis clients, and the origins whose web pages
// may call the HTTP port.
//
// Plain values. One thread. Tested by tests/server/cli.sh and unix.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "server/life/server.h"

namespace weir {

struct DoorOptions {
  std::string http = "127.0.0.1:8080";
  std::string grpc = "127.0.0.1:8081";
  std::string resp = "127.0.0.1:6380";
  std::string admin = "127.0.0.1:8082";
  std::uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::string password_file{};
  std::vector<std::string> origins{};

  void add(CLI::App& app);
  Result<void> fill(ServerOptions& options) const;
};

}  // namespace weir
