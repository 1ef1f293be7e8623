// Enters what requests use into the ledger, and reports it. See weir/usage.h and gate_impl.h. Any thread.
//
// A request has one line per rule that it was charged to, however many limits the rule has. The line has the
// requested cost, not what fitted a limit: a commit beyond what was left is billed in full.
#include "weir/usage.h"

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/few.h"
#include "base/nearest.h"
#include "gate/gate_impl.h"
#include "policy/key_name.h"
#include "policy/subject.h"
#include "usage/accounts.h"

namespace weir {
namespace {

constexpr std::int64_t kDaysAsked = 30;

std::uint64_t magnitude(std::int64_t n) {
  return n < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
}

usage::Sums sums_of(std::int64_t cost) {
  return cost < 0 ? usage::Sums{.returned = magnitude(cost)} : usage::Sums{.charged = magnitude(cost)};
}

// The first and last day of the query, as numbers. Also sets `from` and `to` of the report.
Result<std::pair<std::int64_t, std::int64_t>> days_of(const UsageQuery& query, std::int64_t today, UsageReport& out) {
  const auto day_or = [](const std::string& text, std::int64_t other) {
    return text.empty() ? Result<std::int64_t>(other) : usage::parse_day(text);
  };
  const auto to = day_or(query.to, today);
  if (!to) return fail(to.error());
  const auto days = query.days > 0 ? static_cast<std::int64_t>(std::min<std::size_t>(query.days, 36'500)) : kDaysAsked;
  const auto from = day_or(query.from, std::max<std::int64_t>(*to - days + 1, 0));
  if (!from) return fail(from.error());
  out.from = usage::day_text(*from);
  out.to = usage::day_text(*to);
  if (*from > *to)
    return fail(ErrorCode::invalid_argument, "the first day, " + out.from + ", is after the last, " + out.to);
  return std::pair{*from, *to};
}

}  // namespace

// The lines of one request, with the memory for their subjects.
class Gate::Impl::Lines {
 public:
  Lines(const policy::Rulebook& book, const policy::Bill& bill) : book_(book), bill_(bill) {}

  // Adds a line for the rule of this charge. The charges of a rule are adjacent, and only its first counts.
  void add(std::size_t charge, const usage::Sums& sums) {
    const policy::BookLimit& limit = *bill_.limits[charge];
    add(limit.rule, policy::key_body(bill_.charges[charge].key, limit.suffix), sums);
  }
  // Adds a line for an unlimited rule or plan, less what was entered before.
  void add(const policy::FreeCharge& free, std::int64_t before = 0) {
    add(free.rule, policy::key_body(free.key, {}), sums_of(free.cost - before));
  }
  // The limits of a rule are in ascending order. If it restarts, another reading of the path begins.
  bool is_first_of_rule(std::size_t charge) const {
    return charge == 0 || bill_.limits[charge]->rule != bill_.limits[charge - 1]->rule ||
           bill_.limits[charge] <= bill_.limits[charge - 1];
  }
  void enter(Impl& gate, Micros now) {
    if (lines_.size() > 0) gate.ledger.add(lines_.all(), now == Micros{0} ? gate.limiter.now() : now);
  }

 private:
  void add(std::uint32_t number, std::string_view body, const usage::Sums& sums) {
    const policy::BookRule& rule = book_.rule(number);
    if (sums == usage::Sums{} || rule.rule->by_hand) return;
    policy::SubjectBuffer& buffer = buffers_[lines_.size()];
    usage::Ledger::Line& line = lines_.add();
    line.rule = rule.counts;
    line.subject = policy::subject_of(body, *rule.per, book_.policy().identity, buffer);
    line.sums = sums;
  }

  const policy::Rulebook& book_;
  const policy::Bill& bill_;
  base::Few<usage::Ledger::Line, 2 * kChargesMax> lines_;
  std::array<policy::SubjectBuffer, 2 * kChargesMax> buffers_;
};

void Gate::Impl::post(const policy::Bill& bill, const Answer& answer, Micros now, PostFree free,
                      OtherViews* others) noexcept try {
  const bool has_any = bill.charges.size() > 0 || (bill.free.size() > 0 && free == PostFree::yes);
  if (!ledger.is_on() || !has_any) return;
  const auto is_new = [others](std::size_t charge) { return others == nullptr || others->is_new[charge]; };
  Lines lines(*answer.rules, bill);
  if (answer.why == Why::limited) {
    const std::size_t by = answer.binding;
    if (is_new(by)) lines.add(by, {.denied = bill.charges[by].cost > 0 ? 1U : 0U});
  } else if (answer.allowed) {
    for (std::size_t i = 0; i < bill.charges.size(); ++i) {
      if (is_new(i) && lines.is_first_of_rule(i)) lines.add(i, sums_of(bill.charges[i].cost));
    }
    for (const policy::FreeCharge& one : bill.free) {
      if (free == PostFree::yes && (others == nullptr || others->is_new_key(one.key))) lines.add(one);
    }
  }
  lines.enter(*this, now);
} catch (const std::exception&) {  // out of memory: it is not entered
}

// Unlimited charges were not entered at the reservation, unless they had a limit then: the amount would be unknown
// now. For a rule's key, only the first reserved charge counts, because others came with a change of the rules.
void Gate::Impl::post_settled(const policy::Bill& bill, const Answer& answer, std::span<const std::int64_t> reserved,
                              std::span<const std::int64_t> free_reserved) noexcept {
  const bool is_whole = reserved.size() == bill.charges.size() && free_reserved.size() == bill.free.size();
  if (!ledger.is_on() || !is_whole || answer.rules == nullptr) return;
  Lines lines(*answer.rules, bill);
  bool is_entered = false;
  for (std::size_t i = 0; i < bill.charges.size(); ++i) {
    is_entered = is_entered && !lines.is_first_of_rule(i);
    if (is_entered || reserved[i] == kNotReserved) continue;
    is_entered = true;
    lines.add(i, sums_of(bill.charges[i].cost - reserved[i]));
  }
  for (std::size_t i = 0; i < bill.free.size(); ++i) lines.add(bill.free[i], free_reserved[i]);
  lines.enter(*this, Micros{0});
}

void Gate::Impl::post_denial(const policy::BookRule& rule, const policy::Rulebook& book, std::string_view body,
                             Micros now) noexcept {
  if (!ledger.is_on() || rule.rule->by_hand) return;
  policy::SubjectBuffer buffer;
  const usage::Ledger::Line line{
      rule.counts, policy::subject_of(body, *rule.per, book.policy().identity, buffer), {.denied = 1}};
  ledger.add({&line, 1}, now);
}

std::optional<Error> refuse_usage(std::string_view text) {
  auto accounts = usage::parse_accounts(text);
  if (accounts) return {};
  return std::move(accounts.error());
}

Result<UsageReport> Gate::usage(const UsageQuery& query, std::span<const std::string> others) const noexcept {
  return base::guarded([&]() -> Result<UsageReport> {
    usage::Ledger& ledger = impl_->ledger;
    if (!ledger.is_on())
      return fail(ErrorCode::not_found,
                  "usage is not counted; set the number of usage subjects above 0 (--usage-subjects)");
    UsageReport out;
    std::string id;
    if (!query.subject.empty()) {
      auto parsed = policy::parse_subject(query.subject);
      if (!parsed) return fail(std::move(parsed.error()));
      id = ledger.kept_id(*std::move(parsed));
    }
    const Micros now = impl_->limiter.now();
    const auto days = days_of(query, now / usage::kDay, out);
    if (!days) return fail(days.error());
    ledger.enter_all(now);
    std::vector<usage::DayAccounts> accounts = ledger.days(days->first, days->second);
    for (const std::string& text : others) {
      auto other = usage::parse_accounts(text);
      if (!other) return fail(std::move(other.error()));
      ledger.hide(*other);
      if (other->day >= days->first && other->day <= days->second) accounts.push_back(*std::move(other));
    }
    if (query.subject.empty()) {
      usage::report_top(accounts, query.rule, query.top, out);
    } else {
      usage::report_subject(accounts, id, query.rule, out);
    }
    return out;
  });
}

Result<std::vector<SavedUsage>> Gate::unsaved_usage() noexcept {
  return base::guarded(
      [&]() -> Result<std::vector<SavedUsage>> { return impl_->ledger.unsaved(impl_->limiter.now()); });
}

void Gate::usage_saved(std::int64_t day, std::uint64_t version) noexcept { impl_->ledger.saved(day, version); }

Result<void> Gate::load_usage(std::string text) noexcept {
  return base::guarded([&] { return impl_->ledger.take(std::move(text), impl_->limiter.now()); });
}

UsageStats Gate::usage_stats() const noexcept { return impl_->ledger.stats(); }

}  // namespace weir
