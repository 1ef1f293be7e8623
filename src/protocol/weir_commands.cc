// Parses the arguments of Weir's own commands, and writes their reply. See weir_commands.h.
#include "protocol/weir_commands.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/nearest.h"
#include "base/request_fields.h"
#include "protocol/request_error.h"
#include "resp/number.h"

namespace weir::protocol {
namespace {

constexpr std::string_view kCheckWords[] = {"user", "api_key", "ip",   "tenant",  "plan",   "method", "host",
                                            "path", "cost",    "peek", "header:", "entry:", "id"};
constexpr std::string_view kLimitWords[] = {"cost", "algorithm", "id", "peek"};
constexpr std::size_t kWordMaxShown = 64;

tl::unexpected<Error> twice(std::string_view word) {
  return wrong(base::in_quotes(word) + " is given twice; give it once");
}

Result<void> take_cost(std::string_view word, std::string_view value, bool& is_seen, std::int64_t& out) {
  if (std::exchange(is_seen, true)) return twice(word);
  const auto cost = resp::parse_integer(value);
  if (!cost) return wrong("a cost must be a whole number such as 1, found " + base::in_quotes(value));
  if (auto error = refuse_cost(*cost)) return fail(std::move(*error));
  out = *cost;
  return {};
}

tl::unexpected<Error> without_value(std::string_view word) {
  return wrong(base::in_quotes(word, kWordMaxShown) + " has no value after it");
}

template <class Known>
tl::unexpected<Error> unknown_word(std::string_view what, std::string_view word, const Known& known) {
  std::string message = "unknown " + std::string(what) + " " + base::in_quotes(word) + "; ";
  const std::string_view meant = base::nearest(word, known);
  if (!meant.empty()) return wrong(message.append("did you mean ").append(meant).append("?"));
  message.append("known are");
  for (const std::string_view name : known) {
    message.append(" ").append(name).append(name.ends_with(':') ? "NAME" : "");
  }
  return wrong(message);
}

// If the word is `prefix` followed by a name, stores the attribute and returns true.
bool take_attribute(std::string_view word, std::string_view value, std::string_view prefix,
                    std::vector<Attribute>& attributes) {
  if (word.size() <= prefix.size() || base::lower(word.substr(0, prefix.size())) != prefix) return false;
  attributes.push_back({word.substr(prefix.size()), value});
  return true;
}

// Records which fields were given, because a repeated one is an error.
struct Seen {
  std::array<bool, base::kRequestFields.size()> fields{};
  bool cost = false;
};

bool is_field(std::string_view name) {
  return name == "cost" || name.starts_with("header:") || name.starts_with("entry:") ||
         std::ranges::find(base::kRequestFields, name, &base::RequestField::name) != base::kRequestFields.end();
}

Result<void> take_field(std::string_view word, std::string_view value, Seen& seen, FieldCheck& check) {
  if (take_attribute(word, value, "header:", check.headers)) return {};
  if (take_attribute(word, value, "entry:", check.entries)) return {};
  const std::string name = base::lower(word.substr(0, kWordMaxShown));
  for (std::size_t i = 0; i < base::kRequestFields.size(); ++i) {
    if (base::kRequestFields[i].name != name) continue;
    if (std::exchange(seen.fields[i], true)) return twice(word);
    check.request.*base::kRequestFields[i].value = value;
    return {};
  }
  if (name == "cost") return take_cost(word, value, seen.cost, check.request.cost);
  return unknown_word("field", word, kCheckWords);
}

Result<void> take_option(std::string_view word, std::string_view value, Seen& seen, LimitCheck& check) {
  const std::string name = base::lower(word.substr(0, kWordMaxShown));
  if (name == "cost") return take_cost(word, value, seen.cost, check.cost);
  if (name != "algorithm") return unknown_word("option", word, kLimitWords);
  if (check.algorithm) return twice(word);
  const auto algorithm = parse_algorithm(value);
  if (!algorithm) return fail(algorithm.error());
  check.algorithm = *algorithm;
  return {};
}

bool is_option(std::string_view name) { return name == "cost" || name == "algorithm"; }

// Reads PEEK and ID, which both commands know, and gives all other words with their values to `take`. A word that the
// command does not know may lack a value: then the error is that it is unknown.
template <class Check, class IsKnown, class Take>
Result<void> read_words(std::span<const std::string_view> words, Check& check, IsKnown is_known, Take take) {
  for (std::size_t at = 0; at < words.size();) {
    const std::string_view word = words[at++];
    const std::string name = base::lower(word.substr(0, kWordMaxShown));
    if (name == "peek") {
      if (std::exchange(check.is_peek, true)) return twice(word);
      continue;
    }
    const bool has_value = at < words.size();
    const std::string_view value = has_value ? words[at++] : std::string_view{};
    if (!has_value && (name == "id" || is_known(name))) return without_value(word);
    if (name != "id") {
      if (auto taken = take(word, value); !taken) return taken;
    } else if (check.id) {
      return twice(word);
    } else {
      check.id = value;
    }
  }
  if (check.is_peek && check.id) return wrong("PEEK charges nothing, so ID has no effect; give one of them");
  return {};
}

std::int64_t millis_ceil(Micros wait) {
  if (wait == kNever) return -1;
  return wait.count() / 1000 + (wait.count() % 1000 > 0 ? 1 : 0);
}

struct Reply {
  bool allowed = false;
  std::string_view reason;
  std::string_view rule;
  const Decision* decision = nullptr;  // null if no limit decided
  Micros retry_after{0};
};

void write_number(std::string_view name, std::optional<std::int64_t> value, resp::Writer& out) {
  out.bulk(name);
  if (value) {
    out.integer(*value);
  } else {
    out.null();
  }
}

void write_reply(const Reply& reply, resp::Writer& out) {
  using Number = std::optional<std::int64_t>;
  const Decision* const decision = reply.decision;
  const bool is_of_fleet = decision != nullptr && decision->decided_by != DecidedBy::here;
  out.map(is_of_fleet ? 9 : 8);
  write_number("allowed", reply.allowed ? 1 : 0, out);
  out.bulk("reason");
  out.bulk(reply.reason);
  out.bulk("rule");
  if (reply.rule.empty()) {
    out.null();
  } else {
    out.bulk(reply.rule);
  }
  write_number("limit", decision != nullptr ? Number(decision->limit) : Number(), out);
  write_number("remaining", decision != nullptr ? Number(decision->remaining) : Number(), out);
  write_number("retry_after_ms", millis_ceil(reply.retry_after), out);
  write_number("reset_after_ms", decision != nullptr ? millis_ceil(decision->reset_after) : 0, out);
  write_number("delay_ms", decision != nullptr ? millis_ceil(decision->delay) : 0, out);
  if (!is_of_fleet) return;
  out.bulk("decided_by");
  out.bulk(weir::to_string(decision->decided_by));
}

}  // namespace

Result<FieldCheck> parse_fields(std::span<const std::string_view> words) {
  Result<FieldCheck> check(tl::in_place);
  Seen seen;
  const auto read = read_words(words, *check, is_field, [&](std::string_view word, std::string_view value) {
    return take_field(word, value, seen, *check);
  });
  if (!read) return fail(read.error());
  check->request.headers = check->headers;
  check->request.entries = check->entries;
  return check;
}

Result<LimitCheck> parse_limit_check(std::span<const std::string_view> words) {
  WEIR_ASSERT(words.size() >= 2);
  Result<LimitCheck> check(tl::in_place);
  check->key = words[0];
  check->quota = words[1];
  Seen seen;
  const auto read = read_words(words.subspan(2), *check, is_option, [&](std::string_view word, std::string_view value) {
    return take_option(word, value, seen, *check);
  });
  if (!read) return fail(read.error());
  return check;
}

void write_answer(const Answer& answer, resp::Writer& out) {
  const LimitAnswer* const binding = answer.binding_limit();
  const Decision* const decision = binding != nullptr ? &binding->decision : nullptr;
  write_reply({answer.allowed, weir::to_string(answer.why), answer.rule, decision, answer.retry_after}, out);
}

void write_decision(const Decision& decision, resp::Writer& out) {
  const std::string_view reason = decision.allowed ? "within" : "limited";
  write_reply({decision.allowed, reason, {}, &decision, decision.retry_after}, out);
}

void write_overload(bool allowed, Micros retry_after, resp::Writer& out) {
  write_reply({allowed, "overload", {}, nullptr, retry_after}, out);
}

}  // namespace weir::protocol
