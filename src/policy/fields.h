// The tables of everything that a config can say: one row per key, in the order in which they are printed.
//
// The parser and the printer use these rows. The schema and the reference page print keys.yaml, which a test compares
// with them.
// Pure; any thread may call it. Tested by policy_reader_test.cc and tests/policy_text_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "algorithm/quota_words.h"
#include "policy/node.h"
#include "policy/reader.h"
#include "weir/duration.h"
#include "weir/policy.h"

namespace weir::policy {

inline constexpr std::size_t kLimitsMaxOfRule = 8;  // and of a plan

// A rule while it is being read. Checks that need the whole rule run at its end.
struct RuleDraft : Rule {
  std::optional<Algorithm> algorithm;
  bool has_limit = false;
};

// keys.yaml, and the templates of the schema and of the reference page.
std::string_view keys_document();
std::string_view schema_document();
std::string_view reference_page();

std::span<const Field<Match>> match_fields();
std::span<const Field<RuleDraft>> rule_fields();
std::span<const Field<RuleCost>> cost_fields();
std::span<const Field<AnswerStyle>> answer_fields();
std::span<const Field<PlanPolicy>> plan_fields();
std::span<const Field<Policy>> policy_fields();
std::span<const Field<Policy>> skip_fields();
std::span<const Field<EnvoyImport>> import_fields();

// Reads a whole rule. Returns nothing if the node is not a map.
std::optional<Rule> read_rule(Reader& reader, const Node& node);
void read_match(Reader& reader, const Node& node, Match& out);
std::optional<Node> write_match(const Match& match);
void read_answers(Reader& reader, const Node& node, AnswerStyle& out);

// Reads `plans`. Once rules and plans are read, resolve_plans() adds the tiers to each rule with `limit:
// plan`.
void read_plans(Reader& reader, const Node& node, PlanPolicy& out);
void resolve_plans(Reader& reader, Policy& policy);
// Reads one quota or several, and sorts them from the shortest period to the longest.
void read_quotas(Reader& reader, const Node& node, std::optional<Algorithm> algorithm, std::vector<RuleLimit>& out);
Node write_quotas(const std::vector<RuleLimit>& limits);
// Refuses two limits with the same period. `who` names their owner in the error.
void check_windows(Reader& reader, const std::string& who, Position at, std::span<const RuleLimit> limits);

// Reads a list of attributes. `global` alone gives an empty list.
void read_dimensions(Reader& reader, const Node& node, std::vector<Dimension>& out);
Node write_dimensions(const std::vector<Dimension>& dimensions);
std::string print_dimensions(const std::vector<Dimension>& dimensions);

// Reads the name of a header, in lower case.
void read_header_name(Reader& reader, const Node& node, std::string_view wanted, std::string& out);

// Reads one path pattern, in its canonical form.
void read_pattern(Reader& reader, const Node& node, std::vector<std::string>& out);

// Returns what distinguishes the window of a limit from the others beside it: its period. A single limit has an empty
// id, so its count continues when the period changes. The longest limit of a plan has an empty id too, so its count
// continues when the plan changes.
std::string window_id(const Rule& rule, std::span<const RuleLimit> beside, const RuleLimit& limit);

// Returns the longest that a quota's period can be; calendar periods vary, and years have leap days.
std::int64_t period_us(const Quota& quota);

// Kinds of values that many rows have --------------------------------------------------------------------------------

template <class Value>
Node write_value(const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return text_node(value ? "true" : "false");
  } else if constexpr (std::is_integral_v<Value>) {
    return text_node(std::to_string(value));
  } else if constexpr (std::is_same_v<Value, Micros>) {
    return text_node(value == Micros{0} ? "0s" : algorithm::duration_text(value.count()));
  } else if constexpr (std::is_same_v<Value, Algorithm>) {
    return text_node(to_string(value));
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return text_node(value);
  } else {
    return list_node(value);
  }
}

// Writes a member, unless it has its default.
template <class T, auto member>
std::optional<Node> write_member(const T& value) {
  if (value.*member == T{}.*member) return {};
  return write_value(value.*member);
}

// A row for `true` or `false`.
template <class T, auto member>
constexpr Field<T> flag_row(std::string_view name) {
  return {name,
          [](Reader& reader, const Node& node, T& out) { out.*member = reader.boolean(node).value_or(out.*member); },
          write_member<T, member>};
}

template <class T, auto member, std::int64_t min, std::int64_t max>
void read_whole(Reader& reader, const Node& node, T& out) {
  using Whole = std::remove_cvref_t<decltype(out.*member)>;
  out.*member = static_cast<Whole>(reader.whole(node, min, max).value_or(out.*member));
}

// The words for the values of an enum, or for false and true, in their order.
struct Words {
  std::span<const std::string_view> words;
  std::string_view wanted;  // in errors
};

template <class T, auto member, const Words& known>
void read_word(Reader& reader, const Node& node, T& out) {
  const auto word = std::ranges::find(known.words, std::string_view(node.text));
  if (!node.is_scalar() || word == known.words.end()) return reader.wrong_kind(node, known.wanted);
  out.*member = static_cast<std::remove_cvref_t<decltype(out.*member)>>(word - known.words.begin());
}

template <class T, auto member, const Words& known>
std::optional<Node> write_word(const T& value) {
  if (value.*member == T{}.*member) return {};
  return text_node(known.words[static_cast<std::size_t>(value.*member)]);
}

// Whether a database or Redis address contains a password. Configs are shown to many people, so it must not.
inline bool has_password(std::string_view url) {
  const std::size_t begin = url.find("://");
  if (begin == url.npos) return false;
  const std::string_view authority = url.substr(begin + 3, url.find('/', begin + 3) - (begin + 3));
  const std::size_t at = authority.rfind('@');
  return (at != authority.npos && authority.substr(0, at).find(':') != authority.npos) ||
         url.find("password=") != url.npos;
}

}  // namespace weir::policy
