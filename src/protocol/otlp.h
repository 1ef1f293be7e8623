// Writes spans as OTLP JSON, which collectors accept at /v1/traces.
//
// Ids are hexadecimal. Times are nanoseconds in a string, and integers are strings too. Kinds and codes are numbers.
// Pure; any thread may call it. Tested by otlp_test.cc and tests/server/traces.sh.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/clock.h"

namespace weir::protocol {

struct SpanAttribute {
  std::string_view name;  // a literal
  std::variant<std::string, std::int64_t> value;
};

// The server's work for one request.
struct TraceSpan {
  std::string trace_id, span_id;  // 32 and 16 hexadecimal digits
  std::string parent_id{};        // empty: the first span of its trace
  std::string name{};
  Micros start{0}, end{0};
  bool is_error = false;  // the server failed, not the client
  std::vector<SpanAttribute> attributes{};
};

// The process that reports the spans.
struct TraceResource {
  std::string version;
  std::string instance;
};

std::string write_otlp(const TraceResource& resource, std::span<const TraceSpan> spans);

}  // namespace weir::protocol
