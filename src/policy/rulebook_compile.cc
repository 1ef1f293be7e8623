// Builds a rulebook: patterns into the index, quotas into limits, and the constant parts of keys.
// This runs when rules are loaded or changed, not for each check. See rulebook.h.
#include <algorithm>

#include "base/family.h"
#include "base/key_space.h"
#include "base/nearest.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/rulebook.h"

namespace weir::policy {
namespace {

std::string part_of(std::string_view text) { return KeyArena::part_of(text); }

ForwardedBy forwarded_by(const std::string& header) {
  if (header == "x-forwarded-for") return ForwardedBy::x_forwarded_for;
  return header == "forwarded" ? ForwardedBy::forwarded : ForwardedBy::single_header;
}

}  // namespace

Result<std::shared_ptr<const Rulebook>> Rulebook::make(Policy policy, const Reader::Compile& compile,
                                                       const CountsOf& counts_of, std::shared_ptr<Plans> plans) {
  const std::shared_ptr<Rulebook> book(new Rulebook);
  book->policy_ = std::move(policy);
  book->plans_ = std::move(plans);
  book->overrides_ = std::make_unique<Overrides>(compile);
  if (auto made = book->compile(compile); !made) return fail(made.error());
  for (BookRule& rule : book->rules_) rule.counts = counts_of ? counts_of(rule.rule->name) : 0;
  return book;
}

Result<void> Rulebook::add_pattern(const std::string& text, std::uint32_t id) {
  auto pattern = PathPattern::parse(text, reading_.path_case);
  if (!pattern) return fail(pattern.error());
  paths_.add(*pattern, id);
  pattern_keys_.push_back(texts_.keep(part_of(pattern->text())));
  patterns_.push_back(*std::move(pattern));
  return {};
}

Result<void> Rulebook::compile(const Reader::Compile& compile) {
  reading_.path_case = policy_.path_case_matters ? PathCase::kept : PathCase::folded;
  std::vector<base::IpRange> proxies;
  for (const std::string& text : policy_.trusted_proxies) {
    const auto range = base::parse_ip_range(text);
    if (!range) return fail(range.error());
    proxies.push_back(*range);
  }
  reading_.trust = {.proxies = base::IpSet(proxies),
                    .by = forwarded_by(policy_.client_ip_header),
                    .header = policy_.client_ip_header,
                    .hops = static_cast<unsigned>(policy_.trusted_hops)};
  for (const Dimension& dimension : policy_.identity) {
    // The number of the kind, followed by the name if the kind has one.
    identity_keys_.push_back(std::string(1, static_cast<char>(dimension.kind)) +
                             (dimension.name.empty() ? "" : part_of(dimension.name)));
  }
  for (const std::string& text : policy_.skip) {
    if (auto added = add_pattern(text, kSkipId); !added) return added;
  }
  for (const std::string& text : policy_.templates) {
    if (auto added = add_pattern(text, kTemplateId); !added) return added;
  }
  rules_.resize(policy_.rules.size());
  for (std::uint32_t i = 0; i < rules_.size(); ++i) {
    if (auto made = compile_rule(i, compile); !made) return made;
  }
  paths_.finish();
  return {};
}

Result<void> Rulebook::compile_rule(std::uint32_t number, const Reader::Compile& compile) {
  const Rule& rule = policy_.rules[number];
  BookRule& out = rules_[number];
  out.rule = &rule;
  out.mode = rule.mode;
  out.percent = static_cast<std::uint8_t>(rule.percent);
  out.otherwise = rule.match.otherwise;
  out.unlimited = rule.unlimited;
  out.required = rule.required;
  out.count_denied = rule.count_denied;
  out.fallback = rule.on_backend_error;
  out.has_cost = !(rule.cost == RuleCost{});
  out.names_path = std::ranges::count(rule.match.all, weir::AttributeKind::path, &Condition::kind) > 0;
  if (rule.expires_at) out.expires_us = rule.expires_at->count();
  const std::string per = print_dimensions(rule.per);
  out.per = &pers_.try_emplace(per, rule.per).first->second;
  out.key_prefix = texts_.keep(base::kRuleKeys + part_of(rule.name) + part_of(per));
  out.first_limit = static_cast<std::uint32_t>(limits_.size());
  out.limits = static_cast<std::uint32_t>(rule.limits.size());
  out.is_ban = !rule.limits.empty();
  for (const RuleLimit& written : rule.limits) out.is_ban = out.is_ban && written.quota.permits == 0;
  if (auto made = compile_limits(number, rule.limits, {}, compile); !made) return made;
  if (auto made = compile_tiers(number, compile); !made) return made;
  return rule.mode == Mode::off ? Result<void>{} : index_rule(number);
}

// The limits of the plans are stored one after the other; the rule itself refers to those of the default. A subject
// whose plan is not known yet gets the default's limits too, but they are counted separately: under limits that are not
// its own, its used permits would be cut to what those limits can represent.
Result<void> Rulebook::compile_tiers(std::uint32_t number, const Reader::Compile& compile) {
  const Rule& rule = policy_.rules[number];
  BookRule& out = rules_[number];
  out.first_tier = static_cast<std::uint32_t>(tiers_.size());
  const auto add = [&](std::string_view name, const std::vector<RuleLimit>& limits, std::string_view apart) {
    tiers_.push_back({.name = name,
                      .first_limit = static_cast<std::uint32_t>(limits_.size()),
                      .limits = static_cast<std::uint32_t>(limits.size())});
    return compile_limits(number, limits, apart, compile);
  };
  const PlanTier* fallback = nullptr;
  for (const PlanTier& tier : rule.tiers) {
    if (auto made = add(tier.name, tier.limits, {}); !made) return made;
    if (tier.name != policy_.plans.fallback) continue;
    fallback = &tier;
    out.first_limit = tiers_.back().first_limit;
    out.limits = tiers_.back().limits;
  }
  if (fallback != nullptr) {
    if (auto made = add({}, fallback->limits, "not known yet"); !made) return made;
  }
  out.tiers = static_cast<std::uint32_t>(tiers_.size()) - out.first_tier;
  return {};
}

// Limits with the same quota are shared: most policies have only a few kinds.
Result<const std::vector<Limit>*> Rulebook::limits_of(const RuleLimit& written, bool has_phases,
                                                      const Reader::Compile& compile) {
  std::string key = std::string(weir::to_string(written.quota.algorithm)) + ' ' + weir::to_string(written.quota);
  if (has_phases) key += " phased";
  auto& limits = shared_limits_[key];
  if (!limits.empty()) return &limits;
  auto limit = compile(written.quota);
  if (!limit) return fail(limit.error());
  for (std::size_t i = 0; has_phases && i < kPhases; ++i) {
    auto one = phased(*limit, limit->period_us / static_cast<std::int64_t>(kPhases) * static_cast<std::int64_t>(i));
    if (!one) return fail(one.error());
    limits.push_back(*std::move(one));
  }
  if (!has_phases) limits.push_back(*std::move(limit));
  return &limits;
}

// Compiles limits that apply together. A non-empty `apart` gives them separate keys.
Result<void> Rulebook::compile_limits(std::uint32_t number, std::span<const RuleLimit> written, std::string_view apart,
                                      const Reader::Compile& compile) {
  const Rule& rule = policy_.rules[number];
  for (const RuleLimit& one : written) {
    const auto limits = limits_of(one, rule.phase_by_key, compile);
    if (!limits) return fail(limits.error());
    const std::string window = window_id(rule, written, one);
    const std::string suffix = (apart.empty() ? "" : part_of(apart)) + (window.empty() ? "" : part_of(window));
    const std::string name = rule.name + ": " + (one.text.empty() ? weir::to_string(one.quota) : one.text);
    limits_.push_back({.limit = (*limits)->data(),
                       .phases = rule.phase_by_key ? (*limits)->data() : nullptr,
                       .suffix = texts_.keep(suffix),
                       .name = texts_.keep(name),
                       .written = &one.quota,
                       .family = base::family_of(rule.name, suffix),
                       .rule = number,
                       .rule_name_bytes = static_cast<std::uint16_t>(rule.name.size())});
  }
  return {};
}

// Indexes a rule by its paths, else by the whole values of one attribute, else it is checked for every request.
// Conditions that the index answers are not checked again.
Result<void> Rulebook::index_rule(std::uint32_t number) {
  const Rule& rule = policy_.rules[number];
  BookRule& out = rules_[number];
  BookConditions conditions;
  out.first_pattern = static_cast<std::uint32_t>(patterns_.size());
  bool is_indexed = false;
  for (const Condition& condition : rule.match.all) {
    if (condition.kind != weir::AttributeKind::path) {
      conditions.all.emplace_back(condition, reading_.path_case);
      continue;
    }
    is_indexed = true;
    for (const std::string& text : condition.any_of) {
      if (auto added = add_pattern(text, number); !added) return added;
    }
  }
  out.end_pattern = static_cast<std::uint32_t>(patterns_.size());
  for (std::size_t i = 0; !is_indexed && i < kIndexed.size(); ++i) {
    const auto found = std::ranges::find_if(conditions.all, [&](const Criterion& criterion) {
      return criterion.condition().kind == kIndexed[i] && criterion.whole_values() != nullptr;
    });
    if (found == conditions.all.end()) continue;
    for (const std::string& value : *found->whole_values()) {
      auto& rules = by_value_[i][value];
      if (rules.empty() || rules.back() != number) rules.push_back(number);
    }
    conditions.all.erase(found);
    is_indexed = true;
  }
  if (!is_indexed) others_.push_back(number);
  for (const auto& set : rule.match.none_of) {
    std::vector<Criterion>& criteria = conditions.none_of.emplace_back();
    for (const Condition& condition : set) criteria.emplace_back(condition, reading_.path_case);
  }
  conditions.entries = rule.match.entries;
  if (!conditions.entries.empty() || !conditions.all.empty() || !conditions.none_of.empty()) {
    out.conditions = &conditions_.emplace_back(std::move(conditions));
  }
  has_expiring_ = has_expiring_ || rule.expires_at.has_value();
  has_unlimited_ = has_unlimited_ || rule.unlimited;
  has_otherwise_ = has_otherwise_ || rule.match.otherwise;
  return {};
}

std::string_view TextStore::keep(std::string_view text) {
  if (text.size() > left_) {
    left_ = std::max(kChunk, text.size());
    at_ = chunks_.emplace_back(std::make_unique<char[]>(left_)).get();
  }
  std::ranges::copy(text, at_);
  const std::string_view kept(at_, text.size());
  at_ += text.size();
  left_ -= text.size();
  return kept;
}

}  // namespace weir::policy
