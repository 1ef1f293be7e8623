// A decision as an HTTP answer. See check_answer.h.
#include "protocol/check_answer.h"

#include <utility>

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

// A problem document, open at its end for what else there is to say.
std::string denied_start(std::string detail, const std::string& message) {
  std::string body = problem_body({429, "Quota exceeded", std::move(detail), kQuotaExceeded});
  body.erase(body.rfind('}'));
  body.append(",\"error\":\"Rate limit exceeded\",\"message\":");
  append_json_text(body, message);
  return body.append(",");
}

std::string denied_body(const Limit& limit, std::int64_t cost, const Decision& decision) {
  std::string body = denied_start(denied_detail(limit, cost, decision), advice(cost, decision));
  body.append("\"violated-policies\":[\"default\"],");
  append_decision_members(body, decision);
  return body.append("}\n");
}

std::string_view reason_of(Why why) {
  switch (why) {
    case Why::within:
      return "within";
    case Why::no_rule:
      return "no_rule";
    case Why::skipped:
      return "skipped";
    case Why::exempt:
      return "exempt";
    case Why::limited:
      return "limited";
    case Why::missing:
      break;
  }
  return "missing";
}

// The binding limit, with the wait that the client is told.
Decision told(const Answer& answer) {
  Decision decision = answer.limits[answer.binding].decision;
  decision.retry_after = answer.retry_after;
  return decision;
}

void append_names(std::string& out, const LimitAnswer& limit) {
  out.append("\"rule\":");
  append_json_text(out, limit.rule);
  out.append(",\"window\":");
  append_json_text(out, limit.quota);
}

void append_rules(std::string& out, const Answer& answer) {
  if (const LimitAnswer* binding = answer.binding_limit()) {
    append_decision_members(out, told(answer));
    out.push_back(',');
    append_names(out, *binding);
  } else {
    out.append("\"allowed\":").append(answer.allowed ? "true" : "false");
    if (!answer.rule.empty()) {
      out.append(",\"rule\":");
      append_json_text(out, answer.rule);
    }
  }
  out.append(",\"reason\":\"").append(reason_of(answer.why)).append("\",\"limits\":[");
  for (std::size_t i = 0; i < answer.limits.size(); ++i) {
    out.append(i > 0 ? ",{" : "{");
    append_names(out, answer.limits[i]);
    out.push_back(',');
    append_decision_members(out, answer.limits[i].decision);
    out.push_back('}');
  }
  out.append("]}\n");
}

std::string denied_by_rules(const Answer& answer) {
  const LimitAnswer* binding = answer.binding_limit();
  if (binding == nullptr) {
    const std::string detail =
        "Rule " + std::string(answer.rule) + " requires \"" + answer.missing + "\", which this request does not have.";
    return denied_start(detail, "Send it with \"" + answer.missing + "\"");
  }
  std::string detail = std::string(binding->name) + ": " + denied_detail(*binding->limit, binding->cost, told(answer));
  std::string body = denied_start(std::move(detail), advice(binding->cost, told(answer)));
  body.append("\"violated-policies\":[");
  bool is_first = true;
  for (const LimitAnswer& limit : answer.limits) {
    if (limit.decision.allowed) continue;
    if (!std::exchange(is_first, false)) body.push_back(',');
    append_json_text(body, limit.name);
  }
  return body.append("],");
}

}  // namespace

HttpAnswer check_answer(const Answer& answer, Micros now) {
  HttpAnswer out;
  if (!answer.limits.empty()) {
    std::vector<NamedDecision> limits;
    for (const LimitAnswer& limit : answer.limits) limits.push_back({limit.name, *limit.limit, limit.decision});
    out.headers = rate_limit_headers(limits, answer.binding, answer.retry_after, now);
  }
  if (!answer.allowed) {
    out.status = 429;
    out.content_type = kProblemType;
    out.body = denied_by_rules(answer);
  } else {
    out.body = "{";
  }
  append_rules(out.body, answer);
  return out;
}

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
