// What explanations and resets need from a rulebook, rule by rule. It uses no index, since this need not be fast. See
// rulebook.h. Texts from outside are quoted, and API keys appear only as their hash.
#include <algorithm>

#include "base/nearest.h"
#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/key_name.h"
#include "policy/rulebook.h"

namespace weir::policy {
std::uint32_t Rulebook::pattern_of(std::uint32_t rule, Facts& facts) const {
  const bool by_rule = rules_[rule].names_path;
  const std::uint32_t templates = static_cast<std::uint32_t>(policy_.skip.size());
  std::uint32_t at = by_rule ? rules_[rule].first_pattern : templates;
  const std::uint32_t end =
      by_rule ? rules_[rule].end_pattern : templates + static_cast<std::uint32_t>(policy_.templates.size());
  while (at < end && !patterns_[at].matches(facts.path())) ++at;
  return at < end ? at : kNoPattern;
}

namespace {

std::string shown(const Condition& condition) {
  std::string out;
  for (std::size_t i = 0; i < condition.any_of.size() && i < 3; ++i) {
    out.append(i > 0 ? " or " : "").append(condition.any_of[i]);
  }
  return condition.any_of.size() > 3 ? out + " ..." : out;
}

std::string found_text(const Condition& condition, Facts& facts) {
  switch (condition.kind) {
    case weir::AttributeKind::ip:
      return facts.ip() == nullptr ? "" : base::to_string(*facts.ip());
    case weir::AttributeKind::api_key:
      return facts.request().api_key.empty() ? "" : "sha256:" + base::hex(facts.key_hash());
    default:
      return std::string(facts.value(condition.kind, condition.name));
  }
}

// The names of a request's entries, as display text.
std::string entries_text(const Request& request) {
  std::string out;
  for (const Attribute& entry : request.entries) {
    out.append(out.empty() ? "" : ", ").append(base::in_quotes(entry.name, 40));
    if (out.size() > 200) return out + " ...";
  }
  return out.empty() ? "none" : out;
}

std::string differs(const Condition& condition, Facts& facts) {
  std::string subject(to_string(condition.kind));
  if (!condition.name.empty()) subject += ' ' + condition.name;
  const std::string found = found_text(condition, facts);
  if (found.empty()) return "the request has no " + subject;
  return subject + " is " + base::in_quotes(found, 80) + ", not " + shown(condition);
}

}  // namespace

std::string Rulebook::mismatch(std::uint32_t number, Facts& facts, std::int64_t now) const {
  const BookRule& rule = rules_[number];
  if (rule.rule->mode == Mode::off) return "the rule is off";
  if (now >= rule.expires_us) return "the rule expired at " + time_text(*rule.rule->expires_at);
  for (const Condition& condition : rule.rule->match.all) {
    if (!Criterion(condition, reading_.path_case).holds(facts)) return differs(condition, facts);
  }
  const auto& entries = rule.rule->match.entries;
  if (!entries.empty() && !has_entries(facts.request(), entries)) {
    std::string wanted;
    for (const std::string& name : entries) wanted.append(wanted.empty() ? "" : ", ").append(name);
    return "its entries are " + entries_text(facts.request()) + ", not " + wanted;
  }
  for (const auto& set : rule.rule->match.none_of) {
    const auto holds = [&](const Condition& one) { return Criterion(one, reading_.path_case).holds(facts); };
    if (!std::ranges::all_of(set, holds)) continue;
    std::string out = "not for ";
    for (const Condition& condition : set) {
      out.append(out.size() > 8 ? " and " : "").append(to_string(condition.kind));
      out.append(condition.name.empty() ? " " : " " + condition.name + " ").append(shown(condition));
    }
    return out;
  }
  return {};
}

std::optional<Dimension> Rulebook::lacking(std::uint32_t number, Facts& facts) const {
  KeyArena arena;
  arena.begin({});
  const std::uint32_t pattern = pattern_of(number, facts);
  for (const Dimension& dimension : rules_[number].rule->per) {
    if (!append(dimension, pattern, facts, arena)) return dimension;
  }
  return {};
}

std::optional<std::uint32_t> Rulebook::find_rule(std::string_view name) const {
  const auto found = std::ranges::find(policy_.rules, name, &Rule::name);
  if (found == policy_.rules.end()) return {};
  return static_cast<std::uint32_t>(found - policy_.rules.begin());
}

Result<std::vector<std::string_view>> Rulebook::keys_of(std::uint32_t number, Facts& facts, KeyArena& keys) const {
  const BookRule& rule = rules_[number];
  const PathHit hit{number, pattern_of(number, facts)};
  // For a path that is not the rule's, it is unknown which of its paths it would count by.
  const bool is_elsewhere = rule.names_path && hit.pattern == kNoPattern &&
                            std::ranges::count(*rule.per, weir::AttributeKind::path, &Dimension::kind) > 0;
  const auto key = is_elsewhere ? std::nullopt : begin_key(hit, facts, keys);
  if (!key) {
    const auto lacks = lacking(number, facts);
    return fail(ErrorCode::invalid_argument,
                "rule " + base::in_quotes(rule.rule->name) + " counts by " +
                    (lacks ? weir::to_string(*lacks) + ", which this request lacks"
                           : "the path patterns of its `match`, and this path matches none of them"));
  }
  std::vector<std::string_view> suffixes;
  const auto add = [&](std::span<const BookLimit> limits) {
    for (const BookLimit& limit : limits) {
      if (std::ranges::count(suffixes, limit.suffix) == 0) suffixes.push_back(limit.suffix);
    }
  };
  add(std::span(limits_).subspan(rule.first_limit, rule.limits));
  for (const BookTier& tier : std::span(tiers_).subspan(rule.first_tier, rule.tiers)) {
    add(std::span(limits_).subspan(tier.first_limit, tier.limits));
  }
  add(limits_for(rule, facts, keys));
  std::vector<std::string_view> out;
  for (const std::string_view suffix : suffixes) {
    keys.begin(*key);
    keys.raw(suffix);
    out.push_back(keys.end());
  }
  return out;
}

std::string Rulebook::key_text(std::uint32_t number, Facts& facts) const {
  const BookRule& rule = rules_[number];
  KeyArena keys;
  const auto key = begin_key({number, pattern_of(number, facts)}, facts, keys);
  return key ? key_name(key_body(*key, {}), *rule.per, policy_.identity, escaped) : "";
}

}  // namespace weir::policy
