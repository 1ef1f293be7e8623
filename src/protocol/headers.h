// What a client of an HTTP service is told about its limit, in header fields.
//
// Several dialects, since nobody knows which one a client reads: X-RateLimit-* with a Unix time, the IETF draft's
// RateLimit in one of its forms, and Retry-After on a denial; AnswerStyle (weir/policy.h) says which. Seconds are
// rounded up. Pure: `now` is an argument. Any thread. Tested by headers_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/answer.h"
#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/policy.h"
#include "weir/verdict.h"

namespace weir {

inline constexpr std::string_view kPolicyName = "default";  // of a limit that nobody named

struct Header {
  std::string_view name;  // a literal
  std::string value;
};

// The limits of a request. `RateLimit-Policy` names the one that binds, or all if AnswerStyle::limits says so; the
// other fields are about the one that binds.
struct ToldLimits {
  std::span<const LimitAnswer> limits;  // not empty; names are printable ASCII without quotes or backslashes
  std::size_t binding = 0;
  Micros retry_after{0};  // may be later than that of the one that binds
};

// append_rate_limit_fields()
//
// As lines of a header, each with its CR LF.
void append_rate_limit_fields(std::string& out, const ToldLimits& told, const AnswerStyle& style, Micros now);

// The same, one by one.
std::vector<Header> rate_limit_headers(const ToldLimits& told, const AnswerStyle& style, Micros now);
std::vector<Header> rate_limit_headers(const Limit& limit, const Decision& decision, Micros now);

// `"steps: 50/5s";q=50;w=5`: the quota and its window. A bucket's window is the time in which an empty one fills;
// calendar windows vary and say none.
std::string policy_field(const Limit& limit, std::string_view name = kPolicyName);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(Micros now);

}  // namespace weir
