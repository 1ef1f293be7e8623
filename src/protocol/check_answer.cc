// A decision as an HTTP answer. See check_answer.h.
#include "protocol/check_answer.h"

#include "protocol/problem.h"
#include "protocol/seconds.h"

namespace weir {
namespace {

constexpr std::string_view kQuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded";

std::string never_reason(std::int64_t cost, const Decision& decision) {
  if (decision.limit == 0) return "This can never pass: the limit is 0, which denies everything";
  return "This can never pass: it costs " + std::to_string(cost) + ", and the limit is " +
         std::to_string(decision.limit);
}

std::string advice(std::int64_t cost, const Decision& decision) {
  if (decision.retry_after == kNever) return never_reason(cost, decision);
  const std::int64_t seconds = seconds_ceil(decision.retry_after);
  return "Try again in " + std::to_string(seconds) + (seconds == 1 ? " second" : " seconds");
}

// A decision does not tell which of its two bounds a log has met, so where it may be the other one, it is named.
bool may_be_crowded(const Limit& limit, const Decision& decision) {
  return limit.algorithm == Algorithm::sliding_log && limit.permits > limit.events_max && decision.remaining == 0;
}

std::string denied_detail(const Limit& limit, std::int64_t cost, const Decision& decision) {
  if (decision.retry_after == kNever) return never_reason(cost, decision) + ".";
  std::string detail = "The request costs " + std::to_string(cost) + " and " + std::to_string(decision.remaining) +
                       " of " + std::to_string(decision.limit) + " remain.";
  if (may_be_crowded(limit, decision)) {
    detail.append(" A sliding_log keeps at most ").append(std::to_string(limit.events_max));
    detail.append(" events and is full, too, when it has so many.");
  }
  return detail;
}

std::string denied_body(const Limit& limit, std::int64_t cost, const Decision& decision) {
  std::string body = problem_body({429, "Quota exceeded", denied_detail(limit, cost, decision), kQuotaExceeded});
  body.erase(body.rfind('}'));
  body.append(",\"error\":\"Rate limit exceeded\",\"message\":");
  append_json_text(body, advice(cost, decision));
  body.append(",\"violated-policies\":[\"default\"],");
  append_decision_members(body, decision);
  return body.append("}\n");
}

}  // namespace

HttpAnswer check_answer(const Limit& limit, std::int64_t cost, const Decision& decision, Micros now) {
  HttpAnswer answer;
  answer.headers = rate_limit_headers(limit, decision, now);
  if (!decision.allowed) {
    answer.status = 429;
    answer.content_type = kProblemType;
    answer.body = denied_body(limit, cost, decision);
    return answer;
  }
  answer.body = "{";
  append_decision_members(answer.body, decision);
  answer.body.append("}\n");
  return answer;
}

}  // namespace weir
