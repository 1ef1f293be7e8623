// Spans of requests, sent to an OpenTelemetry collector in batches.
//
//   if (auto span = traces.begin(parent, now)) ...;  span->name = "POST /v1/check";  traces.end(std::move(span));
//
// A request is traced if its traceparent says that the trace is recorded, else by chance. Sending is the work of a
// thread of its own, over plain HTTP, with an end to every wait; what the queue has no room for is dropped and counted,
// and a collector that is away is asked ever more rarely. Any thread. Tested by tests/server/traces.sh.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/otlp.h"
#include "protocol/trace_parent.h"
#include "weir/result.h"

namespace weir {

struct TraceOptions {
  std::string host{};  // empty: nothing is traced
  std::string port{};
  std::string path{};
  double sample = 0;  // of the requests that no recorded trace is around
  std::string version{};
};

// `http://HOST:4318[/v1/traces]`
Result<TraceOptions> parse_trace_target(std::string_view url);

struct TraceCounts {
  std::uint64_t sent = 0;  // spans
  std::uint64_t dropped = 0;
};

class Traces {
 public:
  explicit Traces(const TraceOptions& options);
  ~Traces();  // what finish() has not seen sent is lost
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  // Null if it is not to be traced, as most are not.
  std::unique_ptr<TraceSpan> begin(const std::optional<TraceParent>& parent);
  void end(std::unique_ptr<TraceSpan> span) noexcept;

  // Sends what there is, for a second or so; nothing comes after it. True once all is done. Waits for `most`; to be
  // called again until whoever calls has waited for long enough.
  bool finish(std::chrono::milliseconds most);

  TraceCounts counts() const;

 private:
  struct State;
  const std::uint64_t threshold_;  // of 2^32
  std::shared_ptr<State> state_;   // the thread's, too
};

}  // namespace weir
