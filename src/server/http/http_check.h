// The check routes: POST /v1/check and POST /v1/checks.
//
// A single check with a limit in its body joins the loop's turn; all others are decided at once. Tested by
// http_check_test.cc and http_checks_test.cc.
#pragma once

#include "server/http/http_service.h"

namespace weir {

HttpNext check_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext checks_route(const HttpCall& call, HttpService& service, HttpWork& work);

// Writes the answer to a check that check_route() left to the turn.
void answer_pending(const PendingCheck& pending, const Result<Decision>& decision, Micros now, HttpService& service);

// Writes the error as a problem document with the status in HttpService::refusal, or a status that fits it better.
void write_refusal(HttpService& service, const Error& error);

// The same for a request about something that may not exist any more.
HttpNext refuse_or_404(HttpService& service, const Error& error);

// Compiles the limit in a check's body. `wanted` says whether it must be a rate or a concurrency limit.
enum class WantedLimit : std::uint8_t { rate, in_flight };
Result<const Limit*> inline_limit(const CheckItem& item, WantedLimit wanted, HttpService& service);

// Passes the check's id on, if there is one; `peeks` charges nothing.
enum class Charging : std::uint8_t { charges, peeks };
Result<void> ask_rules(const CheckItem& item, Charging charging, HttpService& service);
Result<Decision> ask_limiter(const CheckItem& item, const Limit& limit, Charging charging, HttpService& service);

inline const AnswerStyle& style_of(const Answer& answer) {
  static constexpr AnswerStyle kDefault{};
  return answer.style != nullptr ? *answer.style : kDefault;
}

// For a check that no rule decides: the answer style of the current policy all the same.
inline AnswerStyle style_in_force(const HttpService& service) {
  return service.gate == nullptr ? AnswerStyle{} : service.gate->answer_style();
}

// Counts the refused item if its key is too long.
inline void note_key(const HttpService& service) {
  if (!service.bounds.has_room_for(service.item.key)) service.bounds.refuse(Refused::key);
}

// Parses the body into HttpService::item. If the body has no id, takes it from the field Idempotency-Key.
Result<void> read_item(const HttpCall& call, CheckShape shape, HttpService& service);

}  // namespace weir
