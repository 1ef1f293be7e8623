// Spans as OTLP's JSON, which collectors take at /v1/traces.
//
// Ids are hexadecimal, times are nanoseconds in a string, as are whole numbers; kinds and codes are numbers. Pure; any
// thread. Tested by otlp_test.cc and tests/server/traces.sh.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/clock.h"

namespace weir {

struct SpanAttribute {
  std::string_view name;  // a literal
  std::variant<std::string, std::int64_t> value;
};

// What a server did for one request.
struct TraceSpan {
  std::string trace_id, span_id;  // 32 and 16 digits
  std::string parent_id{};        // empty: it is the first of its trace
  std::string name{};
  Micros start{0}, end{0};
  bool is_error = false;  // ours, not the client's
  std::vector<SpanAttribute> attributes{};
};

// Who tells of them.
struct TraceResource {
  std::string version;
  std::string instance;
};

std::string write_otlp(const TraceResource& resource, std::span<const TraceSpan> spans);

}  // namespace weir
