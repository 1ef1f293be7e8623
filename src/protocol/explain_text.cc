// Prints explanations. See explain_text.h.
#include "protocol/explain_text.h"

#include <algorithm>

#include "base/json_text.h"
#include "base/nearest.h"
#include "protocol/problem.h"
#include "protocol/seconds.h"

namespace weir::protocol {
namespace {

// Escapes unprintable bytes, which must not reach a terminal.
std::string visible(const std::string& text) {
  std::string out = base::in_quotes(text, text.size());
  return out.substr(1, out.size() - 2);
}

std::string state_text(const RuleExplanation::State& state) {
  const Decision& decision = state.decision;
  if (decision.decided_by == DecidedBy::closed && !decision.allowed)
    return "denied while Redis is unavailable (closed)";
  const std::string limit = std::to_string(decision.limit);
  std::string out = std::to_string(decision.remaining);
  if (decision.decided_by == DecidedBy::local) {
    out += " left in this server's share (limit " + limit + "), while Redis is unavailable (local)";
  } else {
    out += " of " + limit + " left";
  }
  if (decision.decided_by == DecidedBy::open) out += " on this server, while Redis is unavailable (open)";
  if (state.cost != 1) out += ", costs " + std::to_string(state.cost);
  if (!decision.allowed) {
    out += decision.retry_after == kNever ? ", never passes" : ", passes in " + wait_text(decision.retry_after);
  } else if (decision.delay > Micros{0}) {
    out += ", after a delay of " + wait_text(decision.delay);
  }
  return out;
}

void append_member(std::string& out, const char* name, const std::string& value) {
  out.append("\"").append(name).append("\":");
  base::append_json_text(out, value);
  out.push_back(',');
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  std::size_t width = 4;
  for (const RuleExplanation& rule : explanation.rules) width = std::max(width, rule.rule.size());
  std::string out = explanation.summary + '\n';
  if (!explanation.path.empty()) out += "path    " + visible(explanation.path) + '\n';
  for (const ReadingExplanation& reading : explanation.readings) {
    out += "reading " + visible(reading.path) + ": " + reading.outcome;
    for (const std::string& charge : reading.charges) out += (&charge == reading.charges.data() ? ": " : "; ") + charge;
    out += '\n';
  }
  if (!explanation.client_ip.empty()) out += "client  " + explanation.client_ip + '\n';
  out += '\n';
  for (const RuleExplanation& rule : explanation.rules) {
    out += (rule.applies ? "+ " : "- ") + rule.rule + std::string(width - rule.rule.size() + 2, ' ') + rule.reason;
    if (rule.applies && !rule.key.empty()) out += ", per " + rule.key;
    out += '\n';
    for (const RuleExplanation::State& state : rule.limits) {
      const std::string name = rule.rule + ": " + state.quota;
      out += "    " + state.quota + " (" + state.algorithm + "): " + state_text(state);
      out += name == explanation.binding ? "   <- binding\n" : "\n";
      out += "      worst case: " + state.worst_case + '\n';
      if (!state.on_unavailable.empty()) out += "      Redis unavailable: " + state.on_unavailable + '\n';
    }
  }
  return out;
}

std::string to_json(const Explanation& explanation) {
  std::string out = "{\"allowed\":" + std::string(explanation.allowed ? "true," : "false,");
  append_member(out, "summary", explanation.summary);
  append_member(out, "path", explanation.path);
  append_member(out, "client_ip", explanation.client_ip);
  append_member(out, "binding", explanation.binding);
  out += "\"readings\":[";
  for (const ReadingExplanation& reading : explanation.readings) {
    out += &reading == explanation.readings.data() ? "\n{" : ",\n{";
    append_member(out, "path", reading.path);
    append_member(out, "outcome", reading.outcome);
    out += "\"charges\":[";
    for (const std::string& charge : reading.charges) {
      if (&charge != reading.charges.data()) out += ',';
      base::append_json_text(out, charge);
    }
    out += "]}";
  }
  out += "],\"rules\":[";
  for (std::size_t i = 0; i < explanation.rules.size(); ++i) {
    const RuleExplanation& rule = explanation.rules[i];
    out += i > 0 ? ",\n{" : "\n{";
    append_member(out, "rule", rule.rule);
    out += "\"applies\":" + std::string(rule.applies ? "true," : "false,");
    append_member(out, "reason", rule.reason);
    append_member(out, "key", rule.key);
    out += "\"limits\":[";
    for (std::size_t k = 0; k < rule.limits.size(); ++k) {
      const RuleExplanation::State& state = rule.limits[k];
      out += k > 0 ? ",{" : "{";
      append_member(out, "limit_text", state.quota);
      append_member(out, "algorithm", state.algorithm);
      append_member(out, "worst_case", state.worst_case);
      if (!state.on_unavailable.empty()) append_member(out, "on_backend_error", state.on_unavailable);
      out += "\"cost\":" + std::to_string(state.cost) + ',';
      append_decision_members(out, state.decision);
      out += '}';
    }
    out += "]}";
  }
  return out + "]}\n";
}

}  // namespace weir::protocol
