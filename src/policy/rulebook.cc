// Applies the rules to one request. See rulebook.h; rulebook_compile.cc builds the book.
//
// The steps are: check `skip`, find candidate rules by index, keep those that match, then build their keys. Rules
// with `otherwise` wait until it is known whether another rule with a path applied. Rules in shadow mode do not
// affect that: they are billed separately, and an `otherwise` rule applies as if they did not exist.
#include "policy/rulebook.h"

#include <algorithm>
#include <charconv>

#include "base/fnv.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "policy/dimension.h"

namespace weir::policy {
namespace {

constexpr std::size_t kSmall = 32;  // up to this many candidates are insertion-sorted in place

// An OPTIONS request that a browser sends by itself. If there are no headers, the method alone decides.
bool is_preflight(const Request& request) {
  if (request.method.size() != 7 || !is_header(request.method, "options")) return false;
  return request.headers.empty() || std::ranges::any_of(request.headers, [](const Attribute& header) {
           return is_header(header.name, "access-control-request-method");
         });
}

std::int64_t multiply_saturating(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
}

std::int64_t cost_of(const RuleCost& cost, Facts& facts) {
  std::int64_t permits = cost.permits;
  if (!cost.header.empty()) {
    const std::string_view text = facts.value(weir::AttributeKind::header, cost.header);
    std::int64_t given = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), given);
    const bool is_huge = error == std::errc::result_out_of_range && !text.starts_with('-');
    if (end == text.data() + text.size() && is_huge) given = cost.max;
    if (given >= 1 && end == text.data() + text.size()) permits = std::min(given, cost.max);
  }
  return multiply_saturating(permits, facts.request().cost);
}

std::string_view bytes_of(const base::IpAddress& address) {
  const auto* bytes = reinterpret_cast<const char*>(address.bytes.data());
  return address.is_v4() ? std::string_view(bytes + 12, 4) : std::string_view(bytes, 16);
}

void sort_hits(std::vector<PathHit>& hits) {
  std::ranges::sort(hits);
  const auto same_rule = [](const PathHit& a, const PathHit& b) { return a.id == b.id; };
  hits.erase(std::unique(hits.begin(), hits.end(), same_rule), hits.end());
}

// Returns the candidates in the order of their rules, each once, with the first of its patterns.
std::span<const PathHit> in_order(const PathHits& found, std::array<PathHit, kSmall>& few, std::vector<PathHit>& many) {
  if (found.size() > kSmall) {
    many.assign(found.begin(), found.end());
    sort_hits(many);
    return many;
  }
  std::size_t count = 0;
  for (const PathHit& hit : found) {
    std::size_t at = count;
    while (at > 0 && few[at - 1].id > hit.id) --at;
    if (at > 0 && few[at - 1].id == hit.id) {
      few[at - 1].pattern = std::min(few[at - 1].pattern, hit.pattern);
      continue;
    }
    std::copy_backward(few.begin() + static_cast<std::ptrdiff_t>(at), few.begin() + static_cast<std::ptrdiff_t>(count),
                       few.begin() + static_cast<std::ptrdiff_t>(count) + 1);
    few[at] = hit;
    ++count;
  }
  return {few.data(), count};
}

}  // namespace

std::uint64_t key_mark(std::string_view key) {
  std::uint64_t mark = base::fnv1a_64(key);
  mark ^= mark >> 32;
  mark *= 0x9e3779b97f4a7c15;
  return mark ^ mark >> 29;
}

const Limit* limit_of_key(const BookLimit& limit, std::string_view key) {
  return limit.phases == nullptr ? limit.limit : &limit.phases[key_mark(key) % kPhases];
}

bool has_entries(const Request& request, const std::vector<std::string>& names) {
  return std::ranges::equal(request.entries, names, {}, &Attribute::name);
}

bool Rulebook::is_about(const BookRule& rule, Facts& facts, std::int64_t now) {
  if (now >= rule.expires_us) return false;
  if (rule.conditions == nullptr) return true;
  const auto& entries = rule.conditions->entries;
  if (!entries.empty() && !has_entries(facts.request(), entries)) return false;
  const auto holds = [&](const Criterion& criterion) { return criterion.holds(facts); };
  return std::ranges::all_of(rule.conditions->all, holds) &&
         std::ranges::none_of(rule.conditions->none_of,
                              [&](const auto& set) { return std::ranges::all_of(set, holds); });
}

void Rulebook::find_by_value(Facts& facts, PathHits& hits) const {
  for (std::size_t i = 0; i < kIndexed.size(); ++i) {
    if (by_value_[i].empty()) continue;
    const std::string_view value = facts.value(kIndexed[i], {});
    if (value.empty()) continue;
    const auto found = by_value_[i].find(value);
    if (found == by_value_[i].end()) continue;
    for (const std::uint32_t rule : found->second) hits.add({rule, kNoPattern});
  }
  for (const std::uint32_t rule : others_) hits.add({rule, kNoPattern});
}

// An unlimited rule lifts every limit but bans, under the conditions of any other rule: the request has all
// attributes of its `per`, and the rule is enforced for this key.
bool Rulebook::is_exempt(std::span<const PathHit> hits, std::uint32_t template_pattern, Facts& facts, std::int64_t now,
                         Bill& out) const {
  for (PathHit hit : hits) {
    const BookRule& rule = rules_[hit.id];
    if (!rule.unlimited || !is_about(rule, facts, now)) continue;
    if (hit.pattern == kNoPattern) hit.pattern = template_pattern;
    const auto key = begin_key(hit, facts, out.keys);
    if (!key) continue;
    if (is_in_shadow(rule, *key)) {
      out.keys.drop();
      continue;
    }
    let_pass(rule, facts, *key, out);
    out.rule = hit.id;
    return true;
  }
  return false;
}

void Rulebook::bill(Facts& facts, std::int64_t now, Bill& out) const {
  if (policy_.skip_preflights && is_preflight(facts.request())) {
    out.reason = Bill::Reason::skipped;
  } else if (facts.readings() == 1) [[likely]] {
    bill_reading(facts, now, out);
  } else {
    bill_readings(facts, now, out);
  }
}

// Unites the charges of all readings. A request is skipped or exempt only if every reading says so.
void Rulebook::bill_readings(Facts& facts, std::int64_t now, Bill& out) const {
  using Reason = Bill::Reason;
  // For each reason, the first reading that gave it, and its rule.
  struct First {
    std::size_t reading = SIZE_MAX;
    std::uint32_t rule = 0;
  };
  std::array<First, Bill::kReasons> first{};
  for (std::size_t i = 0; i < facts.readings(); ++i) {
    facts.choose_reading(i);
    out.reason = Reason::no_rule;
    bill_reading(facts, now, out);
    First& found = first[static_cast<std::size_t>(out.reason)];
    if (found.reading == SIZE_MAX) found = {i, out.rule};
  }
  const auto has = [&](Reason reason) { return first[static_cast<std::size_t>(reason)].reading != SIZE_MAX; };
  if (facts.readings() == 0 || (has(Reason::too_many) && !has(Reason::missing))) {
    out.reason = Reason::ambiguous;
    out.counts_denied = false;
    out.charges.clear();
    out.limits.clear();
    out.free.clear();
    out.shadows.clear();
    return;
  }
  const bool is_limited = has(Reason::limits) || (has(Reason::no_rule) && out.charges.size() > 0);
  out.reason = has(Reason::missing)   ? Reason::missing
               : is_limited           ? Reason::limits
               : has(Reason::no_rule) ? Reason::no_rule
               : has(Reason::exempt)  ? Reason::exempt
                                      : Reason::skipped;
  const First& found = first[static_cast<std::size_t>(out.reason)];
  out.rule = found.rule;
  facts.choose_reading(found.reading == SIZE_MAX ? 0 : found.reading);
}

void Rulebook::bill_reading(Facts& facts, std::int64_t now, Bill& out) const {
  PathHits found;
  if (paths_.size() > 0) paths_.find(facts.path(), found);
  find_by_value(facts, found);
  std::array<PathHit, kSmall> few;
  std::vector<PathHit> many;
  std::span<const PathHit> hits = in_order(found, few, many);
  // The ids of skip and templates are the largest, so they come last.
  if (!hits.empty() && hits.back().id == kSkipId) {
    out.reason = Bill::Reason::skipped;
    return;
  }
  std::uint32_t template_pattern = kNoPattern;
  if (!hits.empty() && hits.back().id == kTemplateId) {
    template_pattern = hits.back().pattern;
    hits = hits.first(hits.size() - 1);
  }

  const bool exempt = has_unlimited_ && is_exempt(hits, template_pattern, facts, now, out);
  if (exempt) out.reason = Bill::Reason::exempt;
  bool path_applied = false;
  for (const bool otherwise : {false, true}) {
    if (otherwise && (path_applied || !has_otherwise_)) break;
    for (PathHit hit : hits) {
      const BookRule& rule = rules_[hit.id];
      const bool is_lifted = exempt && !rule.is_ban;  // but if it names a path, that still counts for `otherwise`
      if (rule.otherwise != otherwise || (is_lifted && !(rule.names_path && has_otherwise_))) continue;
      if (!is_about(rule, facts, now)) continue;
      if (hit.pattern == kNoPattern) hit.pattern = template_pattern;
      const Applied applied = is_lifted ? would_apply(hit, facts, out.keys) : apply(hit, facts, out);
      path_applied = path_applied || (rule.names_path && applied == Applied::enforced);
    }
  }
}

// The key of a limit is the key of its rule, followed by its window; see docs/configuration.md, "Keys". Returns
// nothing if an attribute of `per` is absent.
std::optional<std::string_view> Rulebook::begin_key(const PathHit& hit, Facts& facts, KeyArena& keys) const {
  const BookRule& rule = rules_[hit.id];
  keys.begin(rule.key_prefix);
  for (const Dimension& dimension : *rule.per) {
    if (append(dimension, hit.pattern, facts, keys)) continue;
    keys.drop();
    return {};
  }
  return keys.end();
}

bool Rulebook::is_in_shadow(const BookRule& rule, std::string_view key) {
  return rule.mode == Mode::shadow || (rule.percent < 100 && key_mark(key) % 100 >= rule.percent);
}

// Whether the rule denies requests that lack an attribute.
bool Rulebook::is_strict(const BookRule& rule) {
  return rule.required && rule.mode == Mode::enforce && rule.percent == 100;
}

Rulebook::Applied Rulebook::would_apply(const PathHit& hit, Facts& facts, KeyArena& keys) const {
  const BookRule& rule = rules_[hit.id];
  const auto key = begin_key(hit, facts, keys);
  if (!key) return is_strict(rule) ? Applied::enforced : Applied::no;
  keys.drop();
  return is_in_shadow(rule, *key) ? Applied::in_shadow : Applied::enforced;
}

Rulebook::Applied Rulebook::apply(const PathHit& hit, Facts& facts, Bill& out) const {
  const BookRule& rule = rules_[hit.id];
  const auto key = begin_key(hit, facts, out.keys);
  if (!key) {
    if (!is_strict(rule)) return Applied::no;
    if (out.reason != Bill::Reason::missing) out.rule = hit.id;
    out.reason = Bill::Reason::missing;
    return Applied::enforced;
  }
  const Applied how = is_in_shadow(rule, *key) ? Applied::in_shadow : Applied::enforced;
  charge(rule, facts, *key, how, out);
  return how;
}

// Whether another reading of the path has added this key already.
bool Rulebook::is_billed(const BookRule& rule, std::string_view key, const Bill& bill) const {
  const auto number = static_cast<std::uint32_t>(&rule - rules_.data());
  const auto is_same = [&](const Charge& charge, const BookLimit& limit) {
    return limit.rule == number && charge.key.size() == key.size() + limit.suffix.size() && charge.key.starts_with(key);
  };
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    if (is_same(bill.charges[i], *bill.limits[i])) return true;
  }
  const auto is_same_free = [&](const FreeCharge& free) { return free.rule == number && free.key == key; };
  const auto is_same_shadow = [&](const ShadowBill& shadow) {
    return !shadow.charges.empty() && is_same(shadow.charges[0], *shadow.limits);
  };
  return std::ranges::any_of(bill.free, is_same_free) || std::ranges::any_of(bill.shadows, is_same_shadow);
}

void Rulebook::let_pass(const BookRule& rule, Facts& facts, std::string_view key, Bill& out) const {
  if (out.free.size() == kChargesMax || (facts.readings() > 1 && is_billed(rule, key, out))) return;
  const std::int64_t cost = rule.has_cost ? cost_of(rule.rule->cost, facts) : facts.request().cost;
  out.free.add(FreeCharge{static_cast<std::uint32_t>(&rule - rules_.data()), key, cost});
}

void Rulebook::charge(const BookRule& rule, Facts& facts, std::string_view key, Applied how, Bill& out) const {
  if (facts.readings() > 1 && is_billed(rule, key, out)) {
    // Another reading has charged this key or let it pass. The key is not charged twice, but if any limit was
    // charged, limits apply to this reading too.
    const bool has_limits = out.charges.size() > 0;
    if (how == Applied::enforced && has_limits && out.reason == Bill::Reason::no_rule)
      out.reason = Bill::Reason::limits;
    return;
  }
  const bool is_enforced = how == Applied::enforced;
  const std::int64_t cost = rule.has_cost ? cost_of(rule.rule->cost, facts) : facts.request().cost;
  const std::span<const BookLimit> limits = limits_for(rule, facts, out.keys);
  if (is_enforced && limits.empty()) return let_pass(rule, facts, key, out);
  if (is_enforced && out.charges.size() + limits.size() > kChargesMax) {
    if (out.reason != Bill::Reason::missing) out.reason = Bill::Reason::too_many;  // missing is denied anyway
    return;
  }
  if (!is_enforced && !limits.empty()) {
    out.shadows.push_back({static_cast<std::uint32_t>(&rule - rules_.data()), limits.data(), {}});
    out.shadows.back().charges.reserve(limits.size());
  }
  for (const BookLimit& limit : limits) {
    // The first limit extends the rule's own key in place, unless other bytes were written after it.
    if (&limit != limits.data() || rule.tiers > 0) out.keys.begin(key);
    out.keys.raw(limit.suffix);
    const std::string_view limit_key = out.keys.end();
    const Charge charge{.key = limit_key,
                        .limit = limit_of_key(limit, key),
                        .cost = cost,
                        .fallback = rule.fallback,
                        .space = KeySpace::rules,
                        .family = limit.family};
    if (is_enforced) {
      out.charges.add(charge);
      out.limits.add(&limit);
    } else {
      out.shadows.back().charges.push_back(charge);
    }
  }
  if (!is_enforced) return;
  out.counts_denied = out.counts_denied || rule.count_denied;
  if (out.reason == Bill::Reason::no_rule) out.reason = Bill::Reason::limits;
}

bool Rulebook::append_identity(Facts& facts, KeyArena& out) const {
  for (std::size_t i = 0; i < policy_.identity.size(); ++i) {
    // The key must contain the kind of identity: user 42 is not API key 42.
    out.raw(identity_keys_[i]);
    if (append(policy_.identity[i], kNoPattern, facts, out)) return true;
    out.take_back(identity_keys_[i].size());
  }
  return false;
}

bool Rulebook::append(const Dimension& dimension, std::uint32_t pattern, Facts& facts, KeyArena& out) const {
  switch (dimension.kind) {
    case weir::AttributeKind::identity:
      return append_identity(facts, out);
    case weir::AttributeKind::ip: {
      const base::IpAddress* ip = facts.ip();
      if (ip == nullptr) return false;
      out.part(bytes_of(base::truncated(*ip, dimension.v4_bits, dimension.v6_bits)));
      return true;
    }
    case weir::AttributeKind::api_key:
      if (facts.request().api_key.empty()) return false;
      out.part({reinterpret_cast<const char*>(facts.key_hash().data()), facts.key_hash().size()});
      return true;
    case weir::AttributeKind::path:  // never as sent, or each invented path would get its own budget
      if (facts.path().empty()) return false;
      out.raw(pattern == kNoPattern ? std::string_view("\0", 1) : pattern_keys_[pattern]);
      return true;
    case weir::AttributeKind::capture: {
      if (pattern == kNoPattern) return false;
      const auto value = patterns_[pattern].capture(facts.path(), dimension.name);
      if (!value || value->empty()) return false;
      out.part(*value);
      return true;
    }
    case weir::AttributeKind::method: {
      std::string method(facts.request().method);
      std::ranges::transform(method, method.begin(), [](char c) { return base::lower(c); });
      if (!method.empty()) out.part(method);
      return !method.empty();
    }
    default: {
      const std::string_view value = facts.value(dimension.kind, dimension.name);
      if (!value.empty()) out.part(value);
      return !value.empty();
    }
  }
}

namespace {

constexpr std::size_t kPlanSubjectMax = 512;  // no database stores a longer name

// The same text as subject_text() gives: an IPv6 address always has its prefix.
std::string network_text(const base::IpAddress& network, const Dimension& dimension) {
  if (network.is_v4() && dimension.v4_bits == 32) return base::to_string(network);
  return base::to_string(network) + '/' + std::to_string(network.is_v4() ? dimension.v4_bits : dimension.v6_bits);
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
  if (plans_ == nullptr) return limits_of_plan(rule, {.plan = facts.value(weir::AttributeKind::plan, {})});
  keys.begin({});
  PlanTerms terms;
  if (append_subject(rule.per->front(), facts, keys)) {
    terms = plans_->find(keys.end());
    if (terms.is_pending && plans_->wait(keys.end())) terms = plans_->find(keys.end());
  }
  keys.drop();
  if (terms.limits != nullptr) {
    const auto number = static_cast<std::uint32_t>(&rule - rules_.data());
    const auto limits = overrides_->find(*rule.rule, number, *terms.limits);
    if (!limits.empty()) return limits;
  }
  return limits_of_plan(rule, terms);
}

bool Rulebook::append_subject(const Dimension& dimension, Facts& facts, KeyArena& out) const {
  switch (dimension.kind) {
    case weir::AttributeKind::identity:
      return std::ranges::any_of(policy_.identity,
                                 [&](const Dimension& one) { return append_subject(one, facts, out); });
    case weir::AttributeKind::ip:
      if (facts.ip() == nullptr) return false;
      out.raw("ip:");
      out.raw(network_text(base::truncated(*facts.ip(), dimension.v4_bits, dimension.v6_bits), dimension));
      return true;
    case weir::AttributeKind::api_key:
      if (facts.request().api_key.empty()) return false;
      out.raw("api_key:sha256:");
      out.raw(base::hex(facts.key_hash()));
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

}  // namespace weir::policy
