// The HTTP response to one check: a Decision, or the outcome of the rules, as status, header fields and body.
//
// An allowed check gets 200, a denied one 429. A 429 is a problem document (RFC 9457, with the type that the
// RateLimit draft registers). It also has `error` and `message`, for clients that look for these. Pure; any thread
// may call it. Tested by check_answer_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/headers.h"
#include "weir/answer.h"
#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/policy.h"
#include "weir/verdict.h"

namespace weir::protocol {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kProblemType = "application/problem+json";
inline constexpr std::string_view kTextType = "text/plain; charset=utf-8";

// An HTTP response. A server loop reuses one, to avoid allocations.
struct HttpAnswer {
  int status = 200;
  std::string_view content_type = kJsonType;  // a literal; empty: the response has no body
  std::string fields{};                       // more header lines, each with its CR LF
  std::string body{};

  void clear();
  void add(std::string_view name, std::string_view value);
};

// Wraps a decision as the answer of a limit without a name.
LimitAnswer nameless(const Limit& limit, std::int64_t cost, const Decision& decision);

// The outcome of a check, by rules or by a single limit.
struct CheckOutcome {
  const Answer* by_rules = nullptr;  // exactly one of these two is set
  const LimitAnswer* by_limit = nullptr;
  std::string_view id_name{};  // name of the member for `id`, such as `reservation`; empty: no such member
  std::string_view id{};
};

// write_check()
//
// By rules, the response reports the binding limit as if it were the only one, then each limit by name. Callers pass
// a denial on to their own clients, so it names only the limit that denies, unless AnswerStyle::limits says all. Only
// the caller reads an allowed response, so that lists all limits. Without any limit there are no header fields.
// `deny_status` is the status of a denial.
void write_check(HttpAnswer& out, const CheckOutcome& outcome, const AnswerStyle& style, Micros now,
                 int deny_status = 429);

// Writes only the header fields.
void write_fields(HttpAnswer& out, const CheckOutcome& outcome, const AnswerStyle& style, Micros now);

// append_check()
//
// Appends only the members, for one of several checks in a response. A denial is then no problem document.
void append_check(std::string& out, const CheckOutcome& outcome);

void write_problem(HttpAnswer& out, int status, std::string_view title, std::string_view detail);

}  // namespace weir::protocol
