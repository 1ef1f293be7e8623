// Writes a decision as an HTTP response. See check_answer.h.
#include "protocol/check_answer.h"

#include <utility>

#include "base/json_text.h"
#include "protocol/problem.h"
#include "protocol/seconds.h"

namespace weir::protocol {
namespace {

constexpr std::string_view kQuotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded";

std::string never_reason(std::int64_t cost, const Decision& decision) {
  if (decision.limit == 0) return "This request can never be allowed: the limit is 0, which denies everything";
  return "This request can never be allowed: it costs " + std::to_string(cost) + ", and the limit is " +
         std::to_string(decision.limit);
}

std::string advice(std::int64_t cost, const Decision& decision) {
  if (decision.retry_after == kNever) return never_reason(cost, decision);
  // In whole seconds, as in Retry-After.
  return "Try again in " + wait_text(Micros{seconds_ceil(decision.retry_after) * kMicrosPerSecond});
}

// Whether a log may have reached its bound on events. A decision does not say which of a log's two bounds was reached.
bool may_be_full_of_events(const Limit& limit, const Decision& decision) {
  return limit.algorithm == Algorithm::sliding_log && limit.permits > limit.events_max && decision.remaining == 0;
}

std::string denied_detail(const Limit& limit, std::int64_t cost, const Decision& decision) {
  if (decision.decided_by == DecidedBy::closed)
    return "The limit cannot be checked now; requests are denied until it can be.";
  if (decision.decided_by == DecidedBy::overloaded)
    return "The limit cannot be checked now: the store is overloaded. Retry shortly.";
  if (decision.decided_by == DecidedBy::no_room)
    return "The limiter has no capacity for what this request must store (a reservation, an id, a log or permits in "
           "flight). Nothing was charged. Retry later.";
  if (decision.retry_after == kNever) return never_reason(cost, decision) + ".";
  std::string detail = "The request costs " + std::to_string(cost) + " and " + std::to_string(decision.remaining) +
                       " of " + std::to_string(decision.limit) + " remain.";
  if (may_be_full_of_events(limit, decision)) {
    detail.append(" A sliding_log stores at most ").append(std::to_string(limit.events_max));
    detail.append(" events, and is also full when it has that many.");
  }
  return detail;
}

// If a limit cannot be checked, the title must not claim that it is exceeded. The type and `error` stay the same.
std::string_view denied_title(const Decision& decision) {
  if (decision.decided_by == DecidedBy::closed || decision.decided_by == DecidedBy::overloaded)
    return "Limit cannot be checked";
  return decision.decided_by == DecidedBy::no_room ? "Out of capacity" : "Quota exceeded";
}

// Writes a problem document without its closing brace, so that members can follow.
void begin_denied(std::string& body, int status, std::string_view title, std::string detail, std::string_view message) {
  body.append(problem_body({status, title, std::move(detail), kQuotaExceeded}));
  body.erase(body.rfind('}'));
  base::append_json_text(body.append(",\"error\":\"Rate limit exceeded\",\"message\":"), message);
  body.push_back(',');
}

// Returns the binding limit's decision with the wait that the client receives.
Decision binding_decision(const Answer& answer) {
  Decision decision = answer.limits[answer.binding].decision;
  decision.retry_after = answer.retry_after;
  return decision;
}

void append_names(std::string& out, const LimitAnswer& limit) {
  base::append_json_text(out.append("\"rule\":"), limit.rule);
  base::append_json_text(out.append(",\"limit_text\":"), limit.quota);
}

void append_rules(std::string& out, const Answer& answer, ShownLimits shown) {
  if (const LimitAnswer* binding = answer.binding_limit()) {
    append_decision_members(out, binding_decision(answer));
    append_names(out.append(","), *binding);
  } else {
    out.append("\"allowed\":").append(answer.allowed ? "true" : "false");
    if (!answer.rule.empty()) base::append_json_text(out.append(",\"rule\":"), answer.rule);
  }
  out.append(",\"reason\":\"").append(weir::to_string(answer.why)).append("\",\"limits\":[");
  bool is_first = true;
  for (const LimitAnswer& limit : answer.limits) {
    if (shown == ShownLimits::binding && &limit != answer.binding_limit()) continue;
    append_names(out.append(std::exchange(is_first, false) ? "{" : ",{"), limit);
    append_decision_members(out.append(","), limit.decision);
    out.push_back('}');
  }
  out.append("]");
}

void deny_by_limit(std::string& body, int status, const LimitAnswer& limit, const Decision& decision,
                   const std::string& before) {
  begin_denied(body, status, denied_title(decision), before + denied_detail(*limit.limit, limit.cost, decision),
               advice(limit.cost, decision));
  body.append("\"violated-policies\":[");
}

void deny_by_rules(std::string& body, int status, const Answer& answer, ShownLimits shown) {
  const LimitAnswer* binding = answer.binding_limit();
  if (answer.why == Why::ambiguous_path) {
    return begin_denied(body, status, "Ambiguous path", "Servers interpret this path in too many different ways.",
                        "Send the path in its plain form, without . and .. segments, '\\', ';' and escaped slashes");
  }
  if (binding == nullptr) {
    std::string detail =
        "Rule " + std::string(answer.rule) + " requires \"" + answer.missing + "\", which this request lacks.";
    return begin_denied(body, status, "Quota exceeded", std::move(detail), "Send it with \"" + answer.missing + "\"");
  }
  deny_by_limit(body, status, *binding, binding_decision(answer), std::string(binding->name) + ": ");
  bool is_first = true;
  for (const LimitAnswer& limit : answer.limits) {
    if (limit.decision.allowed || (shown == ShownLimits::binding && &limit != binding)) continue;
    if (!std::exchange(is_first, false)) body.push_back(',');
    base::append_json_text(body, limit.name);
  }
  body.append("],");
}

void append_members(std::string& out, const CheckOutcome& outcome, ShownLimits shown) {
  if (outcome.by_rules != nullptr) {
    append_rules(out, *outcome.by_rules, shown);
  } else {
    append_decision_members(out, outcome.by_limit->decision);
  }
  if (outcome.id_name.empty()) return;
  base::append_json_text(out.append(","), outcome.id_name);
  base::append_json_text(out.append(":"), outcome.id);
}

}  // namespace

void HttpAnswer::clear() {
  status = 200;
  content_type = kJsonType;
  fields.clear();
  body.clear();
}

void HttpAnswer::add(std::string_view name, std::string_view value) {
  fields.append(name).append(": ").append(value).append("\r\n");
}

LimitAnswer nameless(const Limit& limit, std::int64_t cost, const Decision& decision) {
  return {kPolicyName, {}, {}, &limit, cost, decision};
}

void write_fields(HttpAnswer& out, const CheckOutcome& outcome, const AnswerStyle& style, Micros now) {
  if (const Answer* answer = outcome.by_rules) {
    if (answer->limits.empty()) return;
    append_rate_limit_fields(out.fields, {answer->limits, answer->binding, answer->retry_after}, style, now);
    return;
  }
  const LimitAnswer& limit = *outcome.by_limit;
  append_rate_limit_fields(out.fields, {{&limit, 1}, 0, limit.decision.retry_after}, style, now);
}

void append_check(std::string& out, const CheckOutcome& outcome) { append_members(out, outcome, ShownLimits::all); }

void write_check(HttpAnswer& out, const CheckOutcome& outcome, const AnswerStyle& style, Micros now, int deny_status) {
  write_fields(out, outcome, style, now);
  const bool allowed = outcome.by_rules != nullptr ? outcome.by_rules->allowed : outcome.by_limit->decision.allowed;
  if (allowed) {
    out.body.append("{");
  } else {
    out.status = deny_status;
    out.content_type = kProblemType;
    if (outcome.by_rules != nullptr) {
      deny_by_rules(out.body, deny_status, *outcome.by_rules, style.limits);
    } else {
      deny_by_limit(out.body, deny_status, *outcome.by_limit, outcome.by_limit->decision, "");
      out.body.append("\"default\"],");
    }
  }
  append_members(out.body, outcome, allowed ? ShownLimits::all : style.limits);
  out.body.append("}\n");
}

void write_problem(HttpAnswer& out, int status, std::string_view title, std::string_view detail) {
  out.status = status;
  out.content_type = kProblemType;
  out.body = problem_body({status, title, std::string(detail)});
}

}  // namespace weir::protocol
