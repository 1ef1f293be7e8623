// Counts decisions and reports them. See weir/rule_counts.h and gate_impl.h. Any thread.
//
// All calls and listeners count here, so all count in the same way.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/few.h"
#include "base/sha256.h"
#include "gate/gate_impl.h"
#include "policy/key_name.h"
#include "weir/rule_counts.h"

namespace weir {
namespace {

constexpr std::size_t kMetMax = 2 * kChargesMax;  // watched keys per request

RuleCounts counts_of(std::string_view rule, const usage::Tally::Counts& counts) {
  using What = usage::Tally::What;
  return {.rule = std::string(rule),
          .allowed = counts[What::allowed],
          .denied = counts[What::denied],
          .missing = counts[What::missing],
          .shadow_allowed = counts[What::shadow_allowed],
          .shadow_denied = counts[What::shadow_denied],
          .last_hit = counts.last_hit};
}

}  // namespace

void Gate::Impl::add(const policy::BookRule& rule, usage::Tally::What what, Micros now) noexcept {
  tally.add(rule.counts, what, now);
  if (rule.rule->by_hand) tally.add(usage::Tally::kByHand, what, now);
}

void Gate::Impl::count(const Request& request, const policy::Bill& bill, const Answer& answer, Micros now) noexcept {
  using What = usage::Tally::What;
  if (request.cost <= 0) return;  // a peek or a refund
  if (answer.rules == nullptr) return tally.add(usage::Tally::kNoRule, What::allowed, Micros{0});
  if (answer.why == Why::skipped) return tally.add(usage::Tally::kSkipped, What::allowed, Micros{0});
  if (answer.why == Why::ambiguous_path) return tally.add(usage::Tally::kAmbiguousPath, What::denied, Micros{0});
  const policy::Rulebook& book = *answer.rules;
  const bool is_unasked = answer.why == Why::no_rule && bill.shadows.empty();
  if (is_unasked) return tally.add(usage::Tally::kNoRule, What::allowed, Micros{0});
  if (now == Micros{0}) now = limiter.now();
  std::uint32_t decided = UINT32_MAX;  // the rule's number in the book
  switch (answer.why) {
    case Why::within:
    case Why::limited:
      decided = bill.limits[answer.binding]->rule;
      add(book.rule(decided), answer.allowed ? What::allowed : What::denied, now);
      break;
    case Why::exempt:
    case Why::missing:
      add(book.rule(bill.rule), answer.allowed ? What::allowed : What::missing, now);
      break;
    case Why::no_rule:
    case Why::skipped:
    case Why::ambiguous_path:
      tally.add(usage::Tally::kNoRule, What::allowed, Micros{0});
      break;
  }

  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    const std::uint32_t rule = bill.limits[i]->rule;
    if (rule != decided) tally.meet(book.rule(rule).counts, now);
  }

  const std::uint32_t weight = watch.weigh(now);
  if (weight == 0 && answer.shadows.empty()) return;
  base::Few<usage::Watch::Met, kMetMax> met;
  std::uint32_t before = UINT32_MAX;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    const policy::BookLimit& limit = *bill.limits[i];
    if (std::exchange(before, limit.rule) == limit.rule) continue;
    met.add(usage::Watch::Met{book.rule(limit.rule).counts, policy::key_body(bill.charges[i].key, limit.suffix),
                              !answer.allowed && limit.rule == decided});
  }
  // Shadow decisions are in the order of their rules, limit by limit. A rule whose check failed has none.
  std::size_t at = 0;
  for (const policy::ShadowBill& shadow : bill.shadows) {
    const policy::BookRule& rule = book.rule(shadow.rule);
    const bool is_told = at < answer.shadows.size() && answer.shadows[at].name == shadow.limits->name;
    if (!is_told) continue;
    bool would_pass = true;
    for (std::size_t i = 0; i < shadow.charges.size(); ++i)
      would_pass = answer.shadows[at++].decision.allowed && would_pass;
    add(rule, would_pass ? What::shadow_allowed : What::shadow_denied, now);
    if (met.size() == kMetMax) continue;
    met.add(
        usage::Watch::Met{rule.counts, policy::key_body(shadow.charges[0].key, shadow.limits->suffix), !would_pass});
  }
  if (weight > 0) watch.add(met.all(), weight, now);
}

void Gate::Impl::count_inline(std::span<const Charge> charges, std::span<const Result<Decision>> answers,
                              Micros now) noexcept {
  std::uint64_t allowed = 0, denied = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].cost <= 0 || !answers[i]) continue;
    ++(answers[i]->allowed ? allowed : denied);
  }
  if (allowed > 0) tally.add(usage::Tally::kInline, usage::Tally::What::allowed, now, allowed);
  if (denied > 0) tally.add(usage::Tally::kInline, usage::Tally::What::denied, now, denied);
  if (allowed + denied > 0) watch.add_many(usage::Tally::kInline, charges, answers, now);
}

void Gate::count_inline(std::span<const Charge> charges, std::span<const Result<Decision>> answers,
                        Micros now) noexcept {
  impl_->count_inline(charges, answers, now);
}

void Gate::Impl::count_reversed(const Request& request, const Answer& allowed, std::size_t limit) {
  if (request.cost <= 0 || allowed.rules == nullptr || allowed.why != Why::within) return;
  const policy::Rulebook& book = *allowed.rules;
  const auto was = book.find_rule(allowed.rule), by = book.find_rule(allowed.limits[limit].rule);
  if (!was || !by) return;
  const Micros now = limiter.now();
  tally.take_back(book.rule(*was).counts, usage::Tally::What::allowed);
  if (book.rule(*was).rule->by_hand) tally.take_back(usage::Tally::kByHand, usage::Tally::What::allowed);
  add(book.rule(*by), usage::Tally::What::denied, now);
  const std::uint32_t weight = watch.weigh(now);
  if (weight == 0 && !ledger.is_on()) return;
  policy::Facts facts(request, book.reading());
  if (facts.refuse()) return;
  policy::KeyArena arena;
  const auto keys = book.keys_of(*by, facts, arena);
  if (!keys || keys->empty() || book.rule(*by).limits == 0) return;
  const std::string_view suffix = book.limit(book.rule(*by).first_limit).suffix;
  const std::string_view body = policy::key_body(keys->front(), suffix);
  post_denial(book.rule(*by), book, body, now);
  const usage::Watch::Met met{.rule = book.rule(*by).counts, .key = body, .is_denied = true, .is_hit = false};
  if (weight > 0) watch.add({&met, 1}, weight, now);
}

void Gate::count_reversed(const Request& request, const Answer& allowed, std::size_t limit) noexcept {
  try {
    impl_->count_reversed(request, allowed, limit);
  } catch (const std::exception&) {  // out of memory: the counts stay as they are
  }
}

std::vector<RuleCounts> Gate::rule_counts() const {
  std::vector<RuleCounts> out;
  const auto book = impl_->rules.load();
  for (std::uint32_t i = 0; book != nullptr && i < book->size(); ++i) {
    const policy::BookRule& rule = book->rule(i);
    out.push_back(counts_of(rule.rule->name, impl_->tally.read(rule.counts)));
    out.back().by_hand = rule.rule->by_hand;
  }
  return out;
}

OtherCounts Gate::other_counts() const {
  const auto passed = [&](std::uint32_t number) { return impl_->tally.read(number)[usage::Tally::What::allowed]; };
  return {.no_rule = passed(usage::Tally::kNoRule),
          .skipped = passed(usage::Tally::kSkipped),
          .failed = passed(usage::Tally::kFailed),
          .ambiguous_path = impl_->tally.read(usage::Tally::kAmbiguousPath)[usage::Tally::What::denied],
          .inline_limits = counts_of(kInlineRule, impl_->tally.read(usage::Tally::kInline)),
          .by_hand = counts_of(kByHandRules, impl_->tally.read(usage::Tally::kByHand))};
}

Micros Gate::top_keys_cover() const { return impl_->watch.covers(impl_->limiter.now()); }
std::size_t Gate::top_keys_bytes() const { return impl_->watch.bytes(); }

// Names keys by the rules in effect. If a rule has since changed what it counts by, its old keys are shown as hashes
// only.
class Gate::Impl::Namer {
 public:
  Namer(const Impl& gate, std::shared_ptr<const policy::Rulebook> book) : gate_(gate), book_(std::move(book)) {
    rules_[usage::Tally::kInline] = nullptr;
    for (std::uint32_t i = 0; book_ != nullptr && i < book_->size(); ++i) {
      rules_[book_->rule(i).counts] = book_->rule(i).rule;
    }
  }

  // Returns nothing if the rule no longer exists.
  std::optional<std::string_view> rule(std::uint32_t number) const {
    const auto rule = rules_.find(number);
    if (rule == rules_.end()) return {};
    return rule->second == nullptr ? kInlineRule : std::string_view(rule->second->name);
  }

  std::string key(const usage::Watch::Found& found) const {
    const Rule* const rule = rules_.at(found.rule);
    const auto show = [this](std::string_view value) { return shown(value); };
    std::string name;
    if (rule != nullptr) name = policy::key_name(found.key, rule->per, book_->policy().identity, show);
    const bool is_inline = name.empty() && found.rule == usage::Tally::kInline;
    if (is_inline) name = found.is_cut && gate_.names == KeyNames::hashed ? "" : shown(found.key);
    if (name.empty()) return hashed(found.key);
    if (found.is_cut) name += "..." + hashed(std::to_string(found.mark));
    return name;
  }

 private:
  std::string shown(std::string_view value) const {
    return gate_.names == KeyNames::hashed ? hashed(value) : policy::escaped(value);
  }
  std::string hashed(std::string_view value) const {
    const auto hash = base::sha256(gate_.name_secret + std::string(value));
    return '#' + base::hex(std::span(hash).first(8));
  }

  const Impl& gate_;
  const std::shared_ptr<const policy::Rulebook> book_;
  std::unordered_map<std::uint32_t, const Rule*> rules_;
};

std::vector<TopKey> Gate::top_keys(TopBy by, std::string_view rule, std::size_t n) const {
  const Micros now = impl_->limiter.now();
  const Impl::Namer namer(*impl_, impl_->rules.load());
  auto found = impl_->watch.find(by, now);
  std::erase_if(found, [&](const usage::Watch::Found& one) {
    const auto name = namer.rule(one.rule);
    return !name || (!rule.empty() && *name != rule);
  });
  // Sorts by the certain part: among many rare keys all counts are high, but mostly error.
  const auto is_more = [](const usage::Watch::Found& a, const usage::Watch::Found& b) {
    const std::uint64_t sure_a = a.count - a.error, sure_b = b.count - b.error;
    return std::tie(sure_b, b.count, a.rule, a.key) < std::tie(sure_a, a.count, b.rule, b.key);
  };
  n = std::min(n, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n), found.end(), is_more);
  found.resize(n);

  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> others;
  for (const usage::Watch::Found& one : impl_->watch.find(by == TopBy::hits ? TopBy::denied : TopBy::hits, now)) {
    others[{one.rule, one.mark}] = one.count;
  }
  std::vector<TopKey> out;
  for (const usage::Watch::Found& one : found) {
    const auto other = others.find({one.rule, one.mark});
    const std::uint64_t count = other == others.end() ? 0 : other->second;
    TopKey& key = out.emplace_back(TopKey{.rule = std::string(*namer.rule(one.rule)), .key = namer.key(one)});
    key.hits = by == TopBy::hits ? one.count : std::max(count, one.count);
    key.denied = by == TopBy::denied ? one.count : std::min(count, one.count);
    key.error = one.error;
  }
  return out;
}

}  // namespace weir
