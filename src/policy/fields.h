// The tables of everything that a config can say: one row a key, in the order in which they are printed.
//
// The parser, the printer and the schema all go by these rows, so a key that one knows all know. Pure; any thread.
// Tested by policy_reader_test.cc and tests/policy_text_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/node.h"
#include "policy/reader.h"
#include "weir/policy.h"

namespace weir {

inline constexpr std::size_t kLimitsMaxOfRule = 8;  // and of a plan

// A rule under way: what of it is known only together is put together at its end.
struct RuleDraft {
  Rule rule;
  std::optional<Algorithm> algorithm;
  bool has_limit = false;
};

std::span<const Field<Match>> match_fields();
std::span<const Field<RuleDraft>> rule_fields();
std::span<const Field<AnswerStyle>> answer_fields();
std::span<const Field<PlanPolicy>> plan_fields();
std::span<const Field<Policy>> policy_fields();

// A whole rule. Nothing if it has no name that others could refer to.
std::optional<Rule> read_rule(Reader& reader, const Node& node);
void read_match(Reader& reader, const Node& node, Match& out);
std::string print_match(const Match& match);
std::string print_rule(const Rule& rule);
void read_answers(Reader& reader, const Node& node, AnswerStyle& out);
std::string print_answers(const AnswerStyle& style);

// What stands under `plans`; and the tiers as the rules with `limit: plan` count them, once both are read.
void read_plans(Reader& reader, const Node& node, PlanPolicy& out);
std::string print_plans(const PlanPolicy& plans);
void resolve_plans(Reader& reader, Policy& policy);
// A quota or several, from the shortest period to the longest.
void read_quotas(Reader& reader, const Node& node, std::optional<Algorithm> algorithm, std::vector<RuleLimit>& out);
std::string print_quotas(const std::vector<RuleLimit>& limits);
// No two for the same time. `who` has them.
void check_windows(Reader& reader, const std::string& who, Position at, std::span<const RuleLimit> limits);

// A list of attributes; `global` alone is none.
void read_dimensions(Reader& reader, const Node& node, std::vector<Dimension>& out);
std::string print_dimensions(const std::vector<Dimension>& dimensions);

// The name of a header, in small letters.
void read_header_name(Reader& reader, const Node& node, std::string_view wanted, std::string& out);

// One path pattern, in its canonical form.
void read_pattern(Reader& reader, const Node& node, std::vector<std::string>& out);

// What tells the window of a limit from the others that hold beside it: its period; of a limit that is alone, nothing,
// so that its count goes on when the period is changed. Of the limits of a plan the longest has nothing, so that it
// goes on when the plan is changed.
std::string window_id(const Rule& rule, std::span<const RuleLimit> beside, const RuleLimit& limit);

// How long the period of a quota is at most: calendars have their leap years.
std::int64_t period_us(const Quota& quota);

}  // namespace weir
