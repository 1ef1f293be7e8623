// The flags of `weir serve`, in groups: add() declares them, fill() copies them to the server's options.
//
// Plain values. One thread. Tested by tests/server/cli.sh, and by the scripts that each group names.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "control/control.h"
#include "control/usage_control.h"
#include "fleet/fleet_store.h"
#include "log/log.h"
#include "server/server.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::serve {

// Listeners and threads, the password of Redis clients, and the origins whose web pages may call the HTTP port:
// unix.sh.
struct ListenerFlags {
  std::string http = "127.0.0.1:8080";
  std::string grpc = "127.0.0.1:8081";
  std::string resp = "127.0.0.1:6380";
  std::string admin = "127.0.0.1:8082";
  std::uint64_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::string password_file{};
  std::vector<std::string> origins{};

  void add(CLI::App& app);
  Result<void> fill(server::ServerOptions& options) const;
};

// TLS: its files, and the listeners that use it: tls.sh. Fill it after ListenerFlags.
struct TlsFlags {
  std::string certificate{};
  std::string key{};
  std::string client_ca{};
  std::string listeners{};

  void add(CLI::App& app);
  Result<void> fill(server::ServerOptions& options) const;
};

// PROXY headers and TCP keep-alive: proxy_protocol.sh, half_open.sh.
struct PeerFlags {
  std::string proxied{};
  std::string proxies{};
  std::uint64_t keepalive = server::loop::PeerOptions{}.keepalive;

  void add(CLI::App& app);
  Result<void> fill(server::ServerOptions& options) const;
};

// Bounds on clients; each has a safe default: bounds.sh, bounds_table.sh.
struct BoundFlags {
  std::uint64_t connections = server::ServerOptions{}.connections_max;
  std::uint64_t buffers_mib = server::ServerOptions{}.buffers_max >> 20;
  server::loop::Bounds bounds{};
  std::uint64_t shed_after_ms = static_cast<std::uint64_t>(server::loop::Bounds{}.shed_after.count()) / 1000;
  std::string on_overload = "deny";

  void add(CLI::App& app);
  Result<void> fill(server::ServerOptions& options) const;
};

// Logs and traces: logs.sh, traces.sh.
struct LogFlags {
  log::LogFormat format = log::LogFormat::text;
  log::LogLevel level = log::LogLevel::info;
  server::observe::DenialLogOptions denials{};
  std::string traces{};  // the collector's URL; empty: none
  double traces_sample = 0;

  void add(CLI::App& app);
  Result<void> fill(server::ServerOptions& options) const;
};

// Shutdown and upgrade: drain.sh.
struct LifeFlags {
  std::string drain_delay = "2s";
  std::string drain_max = "10s";
  std::string upgrade_max = "30s";

  void add(CLI::App& app);
  Result<void> fill(server::ServerOptions& options) const;
};

// Administration: the rules' file, the runtime changes, and access to the admin API: admin.sh, hostile_admin.sh. Fill
// it after ListenerFlags.
struct AdminFlags {
  std::string config{};
  std::string envoy{};
  std::string envoy_algorithm = "fixed_window";
  bool envoy_count_denied = false;
  bool force = false;
  bool no_watch = false;
  std::string changes{};
  std::string token_file{};
  std::vector<std::string> hosts{};

  void add(CLI::App& app);
  Result<void> fill(server::ServerOptions& options) const;
  // `state` is the state file; changes are kept beside it unless --changes is given. Empty: no state file.
  control::ControlOptions control(const std::string& state, bool is_of_fleet) const;
};

// Reports on clients: the top keys, and each subject's usage: metrics.sh, usage.sh.
struct UsageFlags {
  bool hash_keys = false;
  std::size_t subjects = 10'000;
  std::size_t days = 35;

  void add(CLI::App& app);
  GateOptions gate_options() const;
  // Usage is kept beside the state file.
  control::UsageControlOptions control_options(const std::string& state) const;
};

// The store of counts, and its size: survive.sh, fleet.sh.
struct StoreFlags {
  std::string store{};  // empty: as in the config, or in memory
  std::string prefix = "weir:";
  std::uint64_t deadline_ms = 15;
  std::uint64_t keys = 0;
  std::uint64_t memory = 0;
  std::string state{};

  void add(CLI::App& app);
  // Uses the config's `store` if the flag is not given.
  void take(const std::string& config);
  LimiterOptions limiter_options() const { return {.keys = keys, .memory = memory, .file = state}; }
  // Null if the store is not Redis.
  Result<std::shared_ptr<fleet::FleetStore>> fleet() const;
  // The file of a fleet node's saved state, which its next start reads; empty: none.
  std::string saved_state_file() const { return state.empty() ? "" : state + ".fleet"; }

 private:
  std::string store_from_ = "--store";  // the source of the store's address, for messages
};

// Logs a line if the saved state could not be written.
void log_if_not_saved(const Result<void>& written);

}  // namespace weir::serve
