// Compiles and caches override texts. See overrides.h.
#include "policy/overrides.h"

#include <algorithm>
#include <utility>

#include "base/family.h"
#include "base/nearest.h"
#include "base/text.h"
#include "policy/fields.h"
#include "policy/rulebook.h"

namespace weir::policy {

// A set never moves, and neither does anything that its limits point to.
struct Overrides::Set {
  std::vector<RuleLimit> written;
  std::deque<Limit> limits;
  std::deque<std::string> texts;
  std::vector<BookLimit> book;
};

Result<std::vector<RuleLimit>> parse_limits(std::string_view text, std::optional<Algorithm> algorithm,
                                            const Reader::Compile& compile) {
  std::vector<RuleLimit> out;
  std::size_t column = 0;
  for (std::string_view rest = text; column <= text.size(); rest = text.substr(std::min(column, text.size()))) {
    const std::string_view one = rest.substr(0, rest.find(','));
    const std::string_view trimmed_one = base::trimmed(one);
    if (out.size() == kLimitsMaxOfRule) {
      return fail(ErrorCode::out_of_range, "more than " + std::to_string(kLimitsMaxOfRule) + " limits");
    }
    auto quota = parse_quota(trimmed_one, algorithm);
    if (!quota) return fail(std::move(quota.error()));
    if (quota->algorithm == Algorithm::concurrency) {
      return fail(ErrorCode::invalid_argument,
                  "a plan cannot limit permits in flight; write a rate such as 100/minute");
    }
    if (auto limit = compile(*quota); !limit) return fail(std::move(limit.error()));
    out.push_back({*std::move(quota), std::string(trimmed_one)});
    column += one.size() + 1;
  }
  std::ranges::stable_sort(out, {}, [](const RuleLimit& limit) { return period_us(limit.quota); });
  for (std::size_t i = 1; i < out.size(); ++i) {
    if (period_us(out[i].quota) == period_us(out[i - 1].quota)) {
      return fail(ErrorCode::invalid_argument, base::in_quotes(out[i - 1].text) + " and " +
                                                   base::in_quotes(out[i].text) +
                                                   " limit the same period; keep the smaller one");
    }
  }
  return out;
}

Overrides::Overrides(Reader::Compile compile) : compile_(std::move(compile)) {}
Overrides::~Overrides() = default;

const Overrides::Set* Overrides::known(std::uint32_t number, std::string_view text) const {
  const auto sets = sets_.find(number);
  if (sets == sets_.end()) return nullptr;
  const auto set = sets->second.find(text);
  return set == sets->second.end() ? nullptr : set->second.get();
}

std::span<const BookLimit> Overrides::find(const Rule& rule, std::uint32_t number, std::string_view text) {
  {
    const base::ReadLock lock(mutex_);
    if (const Set* set = known(number, text)) return set->book;
  }
  auto made = make(rule, number, text);
  const base::WriteLock lock(mutex_);
  if (const Set* set = known(number, text)) return set->book;
  if (size_ >= kOverridesMax) return {};
  ++size_;
  return sets_[number].emplace(std::string(text), std::move(made)).first->second->book;
}

// A text that is no quota is cached as an empty set, so that it is not parsed for every request.
std::unique_ptr<const Overrides::Set> Overrides::make(const Rule& rule, std::uint32_t number,
                                                      std::string_view text) const {
  auto set = std::make_unique<Set>();
  auto written = parse_limits(text, rule.plan_algorithm, compile_);
  if (!written) return set;
  set->written = *std::move(written);
  for (const RuleLimit& one : set->written) {
    auto limit = compile_(one.quota);
    if (!limit) {
      set->book.clear();
      break;
    }
    const std::string window = window_id(rule, set->written, one);
    set->texts.push_back(window.empty() ? std::string() : KeyArena::part_of(window));
    const std::string_view suffix = set->texts.back();
    set->texts.push_back(rule.name + ": " + one.text);
    set->limits.push_back(*std::move(limit));
    set->book.push_back({.limit = &set->limits.back(),
                         .suffix = suffix,
                         .name = set->texts.back(),
                         .written = &one.quota,
                         .family = base::family_of(rule.name, suffix),
                         .rule = number,
                         .rule_name_bytes = static_cast<std::uint16_t>(rule.name.size())});
  }
  return set;
}

}  // namespace weir::policy
