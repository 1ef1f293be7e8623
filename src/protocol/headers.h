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
#include <vector>

#include "weir/answer.h"
#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/policy.h"
#include "weir/verdict.h"

namespace weir {

inline constexpr std::string_view kPolicyName = "default";  // the name of a limit without one

struct Header {
  std::string_view name;  // a literal
  std::string value;
};

// The limits of a request. `RateLimit-Policy` names the binding limit, or all if AnswerStyle::limits says so. The
// other fields describe the binding limit.
struct ToldLimits {
  std::span<const LimitAnswer> limits;  // not empty; names are printable ASCII without quotes or backslashes
  std::size_t binding = 0;
  Micros retry_after{0};  // may be later than that of the binding limit
};

// append_rate_limit_fields()
//
// Appends header lines, each with its CR LF.
void append_rate_limit_fields(std::string& out, const ToldLimits& told, const AnswerStyle& style, Micros now);

// The same as a list of fields.
std::vector<Header> rate_limit_headers(const ToldLimits& told, const AnswerStyle& style, Micros now);
std::vector<Header> rate_limit_headers(const Limit& limit, const Decision& decision, Micros now);

// Returns `"steps: 50/5s";q=50;w=5`: the quota and its window. A bucket's window is the time to fill an empty bucket.
// Calendar limits have no `w`, because their windows vary.
std::string policy_field(const Limit& limit, std::string_view name = kPolicyName);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(Micros now);

}  // namespace weir
