// The answer to one check over HTTP: a Decision, or what the rules answered, as status, header fields and body.
//
// 200 when it passes, 429 when it does not. A 429 is a problem document (RFC 9457, with the type that the
// RateLimit draft registers) and carries `error` and `message` too, for those who look for these.
// Pure; any thread. Tested by check_answer_test.cc.
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

namespace weir {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kProblemType = "application/problem+json";
inline constexpr std::string_view kTextType = "text/plain; charset=utf-8";

// Used again for its room: a loop has one.
struct HttpAnswer {
  int status = 200;
  std::string_view content_type = kJsonType;  // a literal; empty: the answer has no body to have one
  std::string fields{};                       // further lines of the header, each with its CR LF
  std::string body{};

  void clear();
  void add(std::string_view name, std::string_view value);
};

// A limit without a name, and what it decided.
LimitAnswer nameless(const Limit& limit, std::int64_t cost, const Decision& decision);

// What a check decided, whichever way it was asked.
struct CheckOutcome {
  const Answer* by_rules = nullptr;  // or
  const LimitAnswer* by_limit = nullptr;
  std::string_view id_name{};  // of a member for `id`: `reservation`; empty: there is none
  std::string_view id{};
};

// write_check()
//
// By the rules: the binding limit is reported as if it were the only one, then each limit by its name. A denial is what
// callers pass on to their own clients, so it names the limit that denies and no other, unless AnswerStyle::limits says
// all; what passes is read by the caller alone, and lists all. Without any limit there are no header fields, for there
// is nothing to tell. `deny_status` is that of a denial.
void write_check(HttpAnswer& out, const CheckOutcome& outcome, const AnswerStyle& style, Micros now,
                 int deny_status = 429);

// Only the header fields of it.
void write_fields(HttpAnswer& out, const CheckOutcome& outcome, const AnswerStyle& style, Micros now);

// append_check()
//
// Only the members of an allowed answer, or of a denied one that is no problem document: one of many.
void append_check(std::string& out, const CheckOutcome& outcome);

void write_problem(HttpAnswer& out, int status, std::string_view title, std::string_view detail);

}  // namespace weir
