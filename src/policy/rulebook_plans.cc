// Selects the limits of a rule for a request: its own, or those of the subject's plan. See rulebook.h.
//
// The subject is the first attribute that the rule counts by. The request has that attribute, or the rule would not
// apply.
#include <algorithm>

#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/rulebook.h"

namespace weir {
namespace {

constexpr std::size_t kPlanSubjectMax = 512;  // no database stores a longer name

// The same text as subject_text() gives: an IPv6 address always has its prefix.
std::string network_text(const IpAddress& network, const Dimension& dimension) {
  if (network.is_v4() && dimension.v4_bits == 32) return to_string(network);
  return to_string(network) + '/' + std::to_string(network.is_v4() ? dimension.v4_bits : dimension.v6_bits);
}

}  // namespace

// Returns the limits of the subject's plan. The last tier is for a plan not known yet; an unknown plan gets the
// default.
std::span<const BookLimit> Rulebook::limits_of_plan(const BookRule& rule, const PlanTerms& terms) const {
  const std::span<const BookTier> tiers = std::span(tiers_).subspan(rule.first_tier, rule.tiers);
  BookTier found{.first_limit = rule.first_limit, .limits = rule.limits};
  if (terms.is_pending) {
    found = tiers.back();
  } else if (const auto tier = std::ranges::find(tiers, terms.plan, &BookTier::name);
             tier != tiers.end() && !terms.plan.empty()) {
    found = *tier;
  }
  return std::span(limits_).subspan(found.first_limit, found.limits);
}

std::span<const BookLimit> Rulebook::limits_for(const BookRule& rule, Facts& facts, KeyArena& keys) const {
  if (rule.tiers == 0) return std::span(limits_).subspan(rule.first_limit, rule.limits);
  if (plans_ == nullptr) return limits_of_plan(rule, {.plan = facts.value(AttributeKind::plan, {})});
  keys.begin({});
  PlanTerms terms;
  if (append_subject(rule.per->front(), facts, keys)) {
    terms = plans_->find(keys.end());
    if (terms.is_pending && plans_->wait(keys.end())) terms = plans_->find(keys.end());
  }
  keys.drop();
  if (terms.instead != nullptr) {
    const auto number = static_cast<std::uint32_t>(&rule - rules_.data());
    const auto limits = overrides_->find(*rule.rule, number, *terms.instead);
    if (!limits.empty()) return limits;
  }
  return limits_of_plan(rule, terms);
}

bool Rulebook::append_subject(const Dimension& dimension, Facts& facts, KeyArena& out) const {
  switch (dimension.kind) {
    case AttributeKind::identity:
      return std::ranges::any_of(policy_.identity,
                                 [&](const Dimension& one) { return append_subject(one, facts, out); });
    case AttributeKind::ip:
      if (facts.ip() == nullptr) return false;
      out.raw("ip:");
      out.raw(network_text(truncated(*facts.ip(), dimension.v4_bits, dimension.v6_bits), dimension));
      return true;
    case AttributeKind::api_key:
      if (facts.request().api_key.empty()) return false;
      out.raw("api_key:sha256:");
      out.raw(hex(facts.key_hash()));
      return true;
    default: {
      const std::string_view value = facts.value(dimension.kind, dimension.name);
      if (value.empty() || value.size() > kPlanSubjectMax) return false;
      out.raw(to_string(dimension.kind));
      out.raw(":");
      out.raw(value);
      return true;
    }
  }
}

}  // namespace weir
