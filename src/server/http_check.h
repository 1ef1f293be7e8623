// The routes that ask whether something may pass: POST /v1/check and POST /v1/checks.
//
// A single check with a limit of its own is left to the loop's turn; all others are decided at once. Tested by
// http_check_test.cc and http_checks_test.cc.
#pragma once

#include "server/http_service.h"

namespace weir {

HttpNext check_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext checks_route(const HttpCall& call, HttpService& service, HttpWork& work);

// The answer to what check_route() left to the turn.
void answer_pending(const PendingCheck& pending, const Result<Decision>& decision, Micros now, HttpService& service);

// The error of a request, as a problem document with the status of HttpService::refusal, or one that suits it better.
void write_refusal(HttpService& service, const Error& error);

// The same where a request is about something that may not be there any more.
HttpNext refuse_or_404(HttpService& service, const Error& error);

// What the check brings along, compiled; concurrency is refused, or is all that is taken.
enum class WantedLimit : std::uint8_t { rate, in_flight };
Result<const Limit*> inline_limit(const CheckItem& item, WantedLimit wanted, HttpService& service);

// With the id, if there is one; charges nothing if `peeks`.
enum class Charging : std::uint8_t { charges, peeks };
Result<void> ask_rules(const CheckItem& item, Charging charging, HttpService& service);
Result<Decision> ask_limiter(const CheckItem& item, const Limit& limit, Charging charging, HttpService& service);

inline const AnswerStyle& style_of(const Answer& answer) {
  static constexpr AnswerStyle kDefault{};
  return answer.style != nullptr ? *answer.style : kDefault;
}

// Of a check that no rule decides: as the policy in force has it, all the same.
inline AnswerStyle style_in_force(const HttpService& service) {
  return service.gate == nullptr ? AnswerStyle{} : service.gate->answer_style();
}

// Counts the item that was refused, if that is due to its key.
inline void note_key(const HttpService& service) {
  if (!service.bounds.has_room_for(service.item.key)) service.bounds.refuse(Refused::key);
}

// The parsed body in HttpService::item, its id taken from the field Idempotency-Key if it has none.
Result<void> read_item(const HttpCall& call, CheckShape shape, HttpService& service);

}  // namespace weir
