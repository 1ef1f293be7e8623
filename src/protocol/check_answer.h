// The answer to one check over HTTP: a Decision, or what the rules answered, as status, header fields and body.
//
// 200 when it passes, 429 when it does not. A 429 is a problem document (RFC 9457, with the type that the
// RateLimit draft registers) and carries `error` and `message` too, for those who look for these.
// Pure; any thread. Tested by check_answer_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/headers.h"
#include "weir/answer.h"
#include "weir/clock.h"
#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir {

inline constexpr std::string_view kJsonType = "application/json";
inline constexpr std::string_view kProblemType = "application/problem+json";

struct HttpAnswer {
  int status = 200;
  std::string_view content_type = kJsonType;  // a literal
  std::vector<Header> headers;
  std::string body;
};

// By the rules: what binds is told as if it were the only limit, then each limit by its name. Without any limit there
// are no header fields, for there is nothing to tell.
HttpAnswer check_answer(const Answer& answer, Micros now);

HttpAnswer check_answer(const Limit& limit, std::int64_t cost, const Decision& decision, Micros now);

}  // namespace weir
