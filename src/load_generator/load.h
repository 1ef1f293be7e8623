// The load generator: puts a server under load, and reports checks per second and response times.
//
// Closed loop: each connection keeps `depth` requests outstanding, which finds the server's maximum throughput. Open
// loop, with a rate: requests are due by a schedule, whatever the server does, and their time counts from when they
// were due. That finds the response times at a given rate. Blocks until done; the calling thread does not generate
// load. Tested by tests/server/load.sh.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/endpoint.h"
#include "load_generator/exchange.h"
#include "load_generator/histogram.h"
#include "weir/result.h"

namespace weir::load_generator {

inline constexpr std::size_t kConnectionsMax = 50'000;
inline constexpr std::size_t kDepthMax = 100'000;
inline constexpr std::size_t kThreadsMax = 256;
inline constexpr std::chrono::seconds kTimeout{10};  // for a connection, or for any answer

struct Options {
  base::Endpoint target;
  std::function<std::unique_ptr<Exchange>()> make_exchange;  // one for each connection

  std::size_t connections = 50;
  std::size_t depth = 1;  // outstanding requests per connection
  std::size_t threads = 1;
  int cpu = -1;  // the core of the first thread; later threads use the next ones; negative: any

  std::uint64_t keys = 1;
  bool each_key_once = false;  // each key in order, then end; otherwise at random, for `duration`
  std::chrono::nanoseconds duration{std::chrono::seconds{5}};
  std::chrono::nanoseconds warmup{0};  // before `duration`; not counted

  std::uint64_t rate = 0;  // requests per second, open loop; 0: closed loop
  std::uint64_t burst = 1;
  std::uint64_t checks_per_request = 1;
  pid_t pid = 0;  // the server's, to measure its processor time; 0: unknown
};

struct Outcome {
  double seconds = 0;
  std::uint64_t checks = 0;  // answered within `seconds`
  std::uint64_t denied = 0;
  std::uint64_t errors = 0;
  std::string first_error;
  std::uint64_t unanswered = 0;  // open loop: due, but not answered a second after the end
  std::uint64_t bytes_out = 0, bytes_in = 0;
  Histogram times;  // nanoseconds per request, including unanswered ones

  double generator_cores = 0;          // processor time used by this process, in cores
  std::optional<double> server_cores;  // the same of the server, if its pid is known

  double checks_per_second() const { return seconds > 0 ? static_cast<double>(checks) / seconds : 0; }
  std::optional<double> server_ns_per_check() const;
};

Result<Outcome> run_load(const Options& options);

// to_text(): some lines for people. to_json(): one JSON object on a line.
std::string to_text(const Outcome& outcome);
std::string to_json(const Outcome& outcome);

}  // namespace weir::load_generator
