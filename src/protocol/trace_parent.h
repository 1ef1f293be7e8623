// The `traceparent` field: the trace that a request belongs to, and whether that trace is recorded.
//
// The format is that of W3C Trace Context: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01. Pure; any thread
// may call it. Tested by otlp_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/text.h"

namespace weir::protocol {

inline constexpr std::string_view kTraceParentField = "traceparent";

struct TraceParent {
  std::array<char, 32> trace_id{};  // hexadecimal digits, as sent
  std::array<char, 16> span_id{};
  bool is_sampled = false;
};

// Returns nothing if the field is malformed; the request then has no parent.
inline std::optional<TraceParent> parse_trace_parent(std::string_view text) {
  constexpr std::size_t kSize = 55;
  const auto is_hex = [](std::string_view part) {
    return std::ranges::all_of(part, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  };
  const auto is_zero = [](std::string_view part) { return part.find_first_not_of('0') == part.npos; };
  if (text.size() < kSize || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16),
                         flags = text.substr(53, 2);
  if (!is_hex(version) || version == "ff" || !is_hex(trace) || !is_hex(span) || !is_hex(flags)) return std::nullopt;
  if (text.size() > kSize && (version == "00" || text[kSize] != '-')) return std::nullopt;
  if (is_zero(trace) || is_zero(span)) return std::nullopt;
  TraceParent parent;
  std::ranges::copy(trace, parent.trace_id.begin());
  std::ranges::copy(span, parent.span_id.begin());
  parent.is_sampled = (base::hex_digit(flags[1]) & 1) != 0;
  return parent;
}

}  // namespace weir::protocol
