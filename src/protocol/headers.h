// The header fields that report its limits to an HTTP client.
//
// Clients differ in the fields they read, so there are several dialects: X-RateLimit-* with a Unix time, the IETF
// draft's RateLimit in one of its forms, and Retry-After on a denial. AnswerStyle (weir/policy.h) selects them.
// Seconds are rounded up. Pure: `now` is an argument. Any thread may call it. Tested by headers_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weir/answer.h"
#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/policy.h"
#include "weir/verdict.h"

namespace weir::protocol {

inline constexpr std::string_view kPolicyName = "default";  // the name of a limit without one

// The limits of a request. `RateLimit-Policy` names the binding limit, or all if AnswerStyle::limits says so. The
// other fields describe the binding limit.
struct ReportedLimits {
  std::span<const LimitAnswer> limits;  // names are printable ASCII without quotes or backslashes
  std::size_t binding = 0;
  Micros retry_after{0};  // may be later than that of the binding limit
};

// append_rate_limit_fields()
//
// Appends header lines, each with its CR LF. A policy such as `"steps: 50/5s";q=50;w=5` is the limit and its window. A
// bucket's window is the time to fill an empty bucket. Calendar limits have no `w`, because their windows vary.
void append_rate_limit_fields(std::string& out, ReportedLimits reported, const AnswerStyle& style, Micros now);

}  // namespace weir::protocol
