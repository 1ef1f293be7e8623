// What a client of an HTTP service is told about its limit, in header fields.
//
// Three dialects at once, since nobody knows which one a client reads: X-RateLimit-* with a Unix time, the
// IETF draft's RateLimit and RateLimit-Policy (-11, whose form holds since -08), and Retry-After on a denial.
// Seconds are rounded up. Pure: `now` is an argument. Any thread. Tested by headers_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir {

inline constexpr std::string_view kPolicyName = "default";  // of a limit that nobody named

struct Header {
  std::string_view name;  // a literal
  std::string value;
};

// One limit of a request, and what it is called.
struct NamedDecision {
  std::string_view name;  // printable ASCII without quotes or backslashes
  const Limit& limit;
  const Decision& decision;
};

std::vector<Header> rate_limit_headers(const Limit& limit, const Decision& decision, Micros now);

// Of several limits: RateLimit-Policy names all, the other fields tell of the one that binds. `retry_after` may be
// later than its own.
std::vector<Header> rate_limit_headers(std::span<const NamedDecision> limits, std::size_t binding, Micros retry_after,
                                       Micros now);

// `"steps: 50/5s";q=50;w=5`: the quota and its window. A bucket's window is the time in which an empty one fills;
// calendar windows vary and say none.
std::string policy_field(const Limit& limit, std::string_view name = kPolicyName);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(Micros now);

}  // namespace weir
