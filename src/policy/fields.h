// The tables of everything that a config can say: one row per key, in the order in which they are printed.
//
// The parser, the printer, the schema and the reference page all use these rows, so they always know the same keys.
// Pure; any thread may call it. Tested by policy_reader_test.cc and tests/policy_text_test.cc.
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

// A rule while it is being read. Checks that need the whole rule run at its end.
struct RuleDraft {
  Rule rule;
  std::optional<Algorithm> algorithm;
  bool has_limit = false;
};

std::span<const Field<Match>> match_fields();
std::span<const Field<RuleDraft>> rule_fields();
std::span<const Field<RuleCost>> cost_fields();
std::span<const Field<AnswerStyle>> answer_fields();
std::span<const Field<PlanPolicy>> plan_fields();
std::span<const Field<Policy>> policy_fields();
std::span<const Field<Policy>> skip_fields();
std::span<const Field<Policy>> import_fields();

// Reads a whole rule. Returns nothing if the node is not a map.
std::optional<Rule> read_rule(Reader& reader, const Node& node);
void read_match(Reader& reader, const Node& node, Match& out);
std::string print_match(const Match& match);
std::string print_rule(const Rule& rule);
void read_answers(Reader& reader, const Node& node, AnswerStyle& out);
std::string print_answers(const AnswerStyle& style);

// Read and print `plans`. Once rules and plans are read, resolve_plans() adds the tiers to each rule with `limit:
// plan`.
void read_plans(Reader& reader, const Node& node, PlanPolicy& out);
std::string print_plans(const PlanPolicy& plans);
void resolve_plans(Reader& reader, Policy& policy);
// Reads one quota or several, and sorts them from the shortest period to the longest.
void read_quotas(Reader& reader, const Node& node, std::optional<Algorithm> algorithm, std::vector<RuleLimit>& out);
std::string print_quotas(const std::vector<RuleLimit>& limits);
// Refuses two limits with the same period. `who` names their owner in the error.
void check_windows(Reader& reader, const std::string& who, Position at, std::span<const RuleLimit> limits);

// Reads a list of attributes. `global` alone gives an empty list.
void read_dimensions(Reader& reader, const Node& node, std::vector<Dimension>& out);
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

}  // namespace weir
