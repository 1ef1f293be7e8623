// Parses the arguments of Weir's own commands, and writes their reply. See weir_commands.h.
#include "protocol/weir_commands.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "base/nearest.h"
#include "protocol/request_cost.h"
#include "protocol/wrong.h"
#include "resp/number.h"

namespace weir {
namespace {

struct Field {
  std::string_view name;
  std::string_view Request::*member;
};
constexpr Field kFields[] = {{"user", &Request::user},     {"api_key", &Request::api_key}, {"ip", &Request::ip},
                             {"tenant", &Request::tenant}, {"plan", &Request::plan},       {"method", &Request::method},
                             {"host", &Request::host},     {"path", &Request::path}};
constexpr std::string_view kCheckWords[] = {"user", "api_key", "ip",   "tenant",  "plan",   "method", "host",
                                            "path", "cost",    "peek", "header:", "entry:", "id"};
constexpr std::string_view kLimitWords[] = {"cost", "algorithm", "id", "peek"};
constexpr std::size_t kWordMaxShown = 64;

tl::unexpected<Error> twice(std::string_view word) { return wrong(in_quotes(word) + " is given twice; give it once"); }

// Iterates over the words of a command.
class Words {
 public:
  explicit Words(std::span<const std::string_view> words) : words_(words) {}

  bool has_next() const { return at_ < words_.size(); }
  std::string_view next() { return words_[at_++]; }
  std::optional<std::string_view> value() {
    if (!has_next()) return std::nullopt;
    return next();
  }

 private:
  std::span<const std::string_view> words_;
  std::size_t at_ = 0;
};

Result<std::int64_t> parse_cost(std::string_view text) {
  const auto cost = resp::parse_integer(text);
  if (!cost) return wrong("a cost must be a whole number such as 1, found " + in_quotes(text));
  if (auto error = refuse_cost(*cost)) return fail(std::move(*error));
  return *cost;
}

tl::unexpected<Error> peek_with_id() { return wrong("PEEK charges nothing, so ID has no effect; give one of them"); }

tl::unexpected<Error> without_value(std::string_view word) {
  return wrong(in_quotes(word, kWordMaxShown) + " has no value after it");
}

template <class Known>
tl::unexpected<Error> unknown_word(std::string_view what, std::string_view word, const Known& known) {
  std::string message = "unknown " + std::string(what) + " " + in_quotes(word) + "; ";
  const std::string_view meant = nearest(word, known);
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
  if (word.size() <= prefix.size() || lower(word.substr(0, prefix.size())) != prefix) return false;
  attributes.push_back({word.substr(prefix.size()), value});
  return true;
}

// Records which fields were given, because a repeated one is an error.
struct Seen {
  std::array<bool, std::size(kFields)> fields{};
  bool cost = false;
};

bool is_field(std::string_view name) {
  return name == "cost" || name.starts_with("header:") || name.starts_with("entry:") ||
         std::ranges::find(kFields, name, &Field::name) != std::end(kFields);
}

Result<void> take_field(std::string_view word, std::string_view value, Seen& seen, FieldCheck& check) {
  if (take_attribute(word, value, "header:", check.headers)) return {};
  if (take_attribute(word, value, "entry:", check.entries)) return {};
  const std::string name = lower(word.substr(0, kWordMaxShown));
  for (std::size_t i = 0; i < std::size(kFields); ++i) {
    if (kFields[i].name != name) continue;
    if (std::exchange(seen.fields[i], true)) return twice(word);
    check.request.*kFields[i].member = value;
    return {};
  }
  if (name != "cost") return unknown_word("field", word, kCheckWords);
  if (std::exchange(seen.cost, true)) return twice(word);
  const auto cost = parse_cost(value);
  if (!cost) return fail(cost.error());
  check.request.cost = *cost;
  return {};
}

Result<void> take_option(const std::string& name, std::string_view word, std::string_view value, Seen& seen,
                         LimitCheck& check) {
  if (name == "cost") {
    if (std::exchange(seen.cost, true)) return twice(word);
    const auto cost = parse_cost(value);
    if (!cost) return fail(cost.error());
    check.cost = *cost;
  } else {
    if (check.algorithm) return twice(word);
    const auto algorithm = parse_algorithm(value);
    if (!algorithm) return fail(algorithm.error());
    check.algorithm = *algorithm;
  }
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
  out.bulk(to_string(decision->decided_by));
}

}  // namespace

Result<FieldCheck> parse_fields(std::span<const std::string_view> words) {
  Result<FieldCheck> check(tl::in_place);
  Seen seen;
  Words rest(words);
  while (rest.has_next()) {
    const std::string_view word = rest.next();
    const std::string name = lower(word.substr(0, kWordMaxShown));
    if (name == "peek") {
      if (std::exchange(check->is_peek, true)) return twice(word);
      continue;
    }
    const auto value = rest.value();
    if (name == "id") {
      if (!value) return without_value(word);
      if (check->id) return twice(word);
      check->id = *value;
    } else {
      if (!value && is_field(name)) return without_value(word);
      if (auto taken = take_field(word, value.value_or(""), seen, *check); !taken) return fail(taken.error());
    }
  }
  if (check->is_peek && check->id) return peek_with_id();
  check->request.headers = check->headers;
  check->request.entries = check->entries;
  return check;
}

Result<LimitCheck> parse_limit_check(std::span<const std::string_view> words) {
  Result<LimitCheck> check(tl::in_place);
  check->key = words[0];
  check->quota = words[1];
  Seen seen;
  Words rest(words.subspan(2));
  while (rest.has_next()) {
    const std::string_view word = rest.next();
    const std::string name = lower(word.substr(0, kWordMaxShown));
    if (name == "peek") {
      if (std::exchange(check->is_peek, true)) return twice(word);
      continue;
    }
    if (name != "id" && name != "cost" && name != "algorithm") return unknown_word("option", word, kLimitWords);
    const auto value = rest.value();
    if (!value) return without_value(word);
    if (name == "id") {
      if (check->id) return twice(word);
      check->id = *value;
    } else if (auto taken = take_option(name, word, *value, seen, *check); !taken) {
      return fail(taken.error());
    }
  }
  if (check->is_peek && check->id) return peek_with_id();
  return check;
}

void write_answer(const Answer& answer, resp::Writer& out) {
  const LimitAnswer* const binding = answer.binding_limit();
  write_reply({.allowed = answer.allowed,
               .reason = to_string(answer.why),
               .rule = answer.rule,
               .decision = binding != nullptr ? &binding->decision : nullptr,
               .retry_after = answer.retry_after},
              out);
}

void write_decision(const Decision& decision, resp::Writer& out) {
  write_reply({.allowed = decision.allowed,
               .reason = decision.allowed ? "within" : "limited",
               .rule = {},
               .decision = &decision,
               .retry_after = decision.retry_after},
              out);
}

void write_overload(bool allowed, Micros retry_after, resp::Writer& out) {
  write_reply({.allowed = allowed, .reason = "overload", .rule = {}, .decision = nullptr, .retry_after = retry_after},
              out);
}

}  // namespace weir
