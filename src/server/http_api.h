// What the HTTP port offers: a request's method, path and body -> an answer. No sockets, no HTTP parsing.
//
// Every error is a problem document that says what would be right. The Limiter is shared by all threads, the rest
// belongs to the caller. Tested by http_session_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "protocol/check_answer.h"
#include "server/calendar_limits.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

inline constexpr std::string_view kTextType = "text/plain; charset=utf-8";

struct HttpCall {
  std::string_view method;
  std::string_view target;
  std::string_view body;
};

// What the routes work with; one for a loop.
struct HttpService {
  Limiter& limiter;
  Gate* gate = nullptr;  // null: there are no rules
  CalendarLimits calendar_limits{};
};

HttpAnswer answer_call(const HttpCall& call, HttpService& service);

HttpAnswer problem_answer(int status, std::string_view title, std::string detail);

}  // namespace weir
