// The routes of the HTTP API, one file for each group, and what they share. The table is in http_api.cc.
//
// A single check with a limit in its body joins the loop's turn; all others are decided at once. Tested by
// http_check_test.cc, http_checks_test.cc, http_keys_test.cc, http_reserve_test.cc, http_rls_test.cc and
// forward_auth_session_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "protocol/http1.h"
#include "server/http/http_service.h"

namespace weir::server::http {

// Puts the answer into HttpContext::answer, or returns what it waits for.
HttpNext answer_call(const HttpCall& call, HttpContext& context, HttpWork& work);

// The largest body that is accepted for this target.
std::size_t body_max(std::string_view target, const loop::Bounds& bounds);

HttpHandler check_route, checks_route;
// Permits with a later settlement or release.
HttpHandler reserve_route, commit_route, cancel_route, acquire_route, release_route;
// DELETE /v1/keys: resets a key that checks send with their own limits, or the counts of a rule and attributes.
HttpHandler reset_key_route, reset_rule_route;
// GET /auth, and every request that a proxy sends to /auth or below.
HttpHandler forward_auth_route;
// For health checks, on every port.
HttpHandler livez_route, readyz_route;

HttpNext answer_text(HttpContext& context, std::string_view body, std::string_view type = protocol::kTextType);

inline HttpNext answer_problem(HttpContext& context, int status, std::string_view title, std::string_view detail) {
  protocol::write_problem(context.answer, status, title, detail);
  return HttpNext::answer;
}

// Refunds what these rules charged for a forward-auth call: its client has left while the answer was delayed.
void refund_held_request(const HttpCall& call, const std::shared_ptr<const policy::Rulebook>& rules,
                         HttpContext& context);

// Answers a call under overload, without a decision. False if it must be decided all the same. If the turn refuses(),
// every call is answered this way except those that only read.
bool shed_check(const HttpCall& call, const loop::Turn& turn, HttpContext& context);

std::string_view openapi_document();  // embedded from openapi.json

// Writes the answer to a check that check_route() left to the turn.
void answer_pending(const PendingCheck& pending, const Result<Decision>& decision, Micros now, HttpContext& context);

Error no_rules();  // for a check by rules, where there are none

// Answers with the error as a problem document. Its status is HttpContext::refusal, or one that fits the error better.
HttpNext refuse(HttpContext& context, const Error& error);

// The same for a request about something that may not exist any more.
HttpNext refuse_or_404(HttpContext& context, const Error& error);

// Compiles the limit in a check's body. `wanted` says whether it must be a rate or a concurrency limit.
enum class WantedLimit : std::uint8_t { rate, in_flight };
Result<const Limit*> inline_limit(const protocol::CheckItem& item, WantedLimit wanted, HttpContext& context);

// Passes the check's id on, if there is one; `peeks` charges nothing.
enum class Charging : std::uint8_t { charges, peeks };
Result<void> ask_rules(const protocol::CheckItem& item, Charging charging, HttpContext& context);
Result<Decision> ask_limiter(const protocol::CheckItem& item, const Limit& limit, Charging charging,
                             HttpContext& context);

inline const AnswerStyle& style_of(const Answer& answer) {
  static constexpr AnswerStyle kDefault{};
  return answer.style != nullptr ? *answer.style : kDefault;
}

// For a check that no rule decides: the answer style of the current policy all the same.
inline AnswerStyle style_in_force(const HttpContext& context) {
  return context.service.gate == nullptr ? AnswerStyle{} : context.service.gate->answer_style();
}

// Counts the refused item if its key is too long.
inline void note_key(const HttpContext& context) {
  if (!context.service.bounds.takes_key(context.item.key)) context.service.bounds.refuse(loop::Refused::key);
}

// Parses the body into HttpContext::item. If the body has no id, takes it from the field Idempotency-Key.
Result<void> read_item(const HttpCall& call, protocol::CheckShape shape, HttpContext& context);

}  // namespace weir::server::http
