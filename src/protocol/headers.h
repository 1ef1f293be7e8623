// What a client of an HTTP service is told about its limit, in header fields.
//
// Three dialects at once, since nobody knows which one a client reads: X-RateLimit-* with a Unix time, the
// IETF draft's RateLimit and RateLimit-Policy (-11, whose form holds since -08), and Retry-After on a denial.
// Seconds are rounded up. Pure: `now` is an argument. Any thread. Tested by headers_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir {

struct Header {
  std::string_view name;  // a literal
  std::string value;
};

std::vector<Header> rate_limit_headers(const Limit& limit, const Decision& decision, Micros now);

// `"default";q=50;w=5`: the quota and its window. A bucket's window is the time in which an empty one fills;
// calendar windows vary and say none.
std::string policy_field(const Limit& limit);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(Micros now);

}  // namespace weir
