// Spans of requests, sent to an OpenTelemetry collector in batches.
//
//   if (auto span = traces.begin(parent)) ...;  span->name = "POST /v1/check";  traces.end(std::move(span));
//
// A request is traced if its traceparent says that the trace is recorded, otherwise at random. A thread of its own
// sends the spans over plain HTTP, and every wait is bounded. Spans that do not fit in the queue are dropped and
// counted. After failures, the pauses between tries grow up to 30 seconds. Any thread. Tested by
// tests/server/traces.sh.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/endpoint.h"
#include "protocol/otlp.h"
#include "protocol/trace_parent.h"
#include "weir/result.h"

namespace weir::server::observe {

struct TraceOptions {
  base::Endpoint collector{};  // without a host: no tracing
  std::string path{};
  double sample = 0;  // fraction of the requests without a recorded trace
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
  ~Traces();  // spans that are still unsent after finish() are lost
  Traces(const Traces&) = delete;
  Traces& operator=(const Traces&) = delete;

  // Null if the request is not traced, as most are not.
  std::unique_ptr<protocol::TraceSpan> begin(const std::optional<protocol::TraceParent>& parent);
  void end(std::unique_ptr<protocol::TraceSpan> span) noexcept;

  // Accepts no more spans, and sends the remaining ones for about a second. A call waits for up to `most`, and returns
  // true once all is done. Call it again until then, or until the caller has waited long enough.
  bool finish(std::chrono::milliseconds most);

  TraceCounts counts() const;

 private:
  struct State;
  const std::uint64_t threshold_;  // of 2^32
  std::shared_ptr<State> state_;   // shared with the thread
};

}  // namespace weir::server::observe
