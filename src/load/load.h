// Load on a server, and how it bore it: so many checks a second, so long each.
//
// Closed loop: each connection keeps `depth` requests outstanding, which finds the most that a server can do. Open
// loop, with a rate: requests are due by a schedule, whatever the server does, and their time counts from when they
// were due; that finds how long one waits at a given traffic. Blocks until done; call from one thread, which is not one
// of those that make the load. Tested by tests/server/load.sh.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "load/exchange.h"
#include "load/histogram.h"
#include "load/target.h"
#include "weir/result.h"

namespace weir::load {

inline constexpr std::size_t kConnectionsMax = 50'000;
inline constexpr std::size_t kDepthMax = 100'000;
inline constexpr std::size_t kThreadsMax = 256;

struct Options {
  Target target;
  std::function<std::unique_ptr<Exchange>()> make_exchange;  // one for each connection

  std::size_t connections = 50;
  std::size_t depth = 1;  // requests outstanding on each
  std::size_t threads = 1;
  int cpu = -1;  // the core of the first thread, those after it on the next ones; negative: any

  std::uint64_t keys = 1;
  bool each_key_once = false;  // in turn, and that is the end; else at random, for so long:
  std::chrono::nanoseconds duration{std::chrono::seconds{5}};
  std::chrono::nanoseconds warmup{0};  // before it, not counted

  std::uint64_t rate = 0;  // requests a second, in an open loop; 0: closed loop
  std::uint64_t burst = 1;
  std::uint64_t checks_per_request = 1;
  pid_t pid = 0;  // the server's, to see its processor time; 0: not known
};

struct Outcome {
  double seconds = 0;
  std::uint64_t checks = 0;  // answered within that time
  std::uint64_t denied = 0;
  std::uint64_t errors = 0;
  std::string first_error;
  std::uint64_t unanswered = 0;  // open loop: due, and not answered a second after the end
  std::uint64_t bytes_out = 0, bytes_in = 0;
  Histogram times;  // nanoseconds of a request, unanswered ones included

  double generator_cores = 0;          // processor time that we used, of a core
  std::optional<double> server_cores;  // and the server, if its pid is known

  double checks_per_second() const { return seconds > 0 ? static_cast<double>(checks) / seconds : 0; }
  std::optional<double> server_ns_per_check() const;
};

Result<Outcome> run_load(const Options& options);

// For people, some lines; for programs, one JSON object in a line.
std::string to_text(const Outcome& outcome);
std::string to_json(const Outcome& outcome);

}  // namespace weir::load
