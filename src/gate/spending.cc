// Enters what requests use into the ledger, and reports it. See weir/spending.h and gate_impl.h. Any thread.
//
// A request has one line per rule that it was charged to, however many limits the rule has. The line has the
// requested cost, not what fitted a limit: a commit beyond what was left is billed in full.
#include "weir/spending.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/few.h"
#include "base/nearest.h"
#include "gate/gate_impl.h"
#include "policy/key_name.h"
#include "policy/subject.h"
#include "usage/spending_report.h"

namespace weir {
namespace {

constexpr std::int64_t kDaysAsked = 30;

std::uint64_t magnitude(std::int64_t n) {
  return n < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
}

Sums sums_of(std::int64_t cost) {
  return cost < 0 ? Sums{.returned = magnitude(cost)} : Sums{.spent = magnitude(cost)};
}

}  // namespace

// The lines of one request, with the memory for their subjects.
class Gate::Impl::Lines {
 public:
  Lines(const Rulebook& book, const Bill& bill) : book_(book), bill_(bill) {}

  // Adds a line for the rule of this charge. The charges of a rule are adjacent, and only its first counts.
  void add(std::size_t charge, const Sums& sums) {
    if (sums == Sums{}) return;
    const BookLimit& limit = *bill_.limits[charge];
    const BookRule& rule = book_.rule(limit.rule);
    if (rule.rule->by_hand) return;
    SubjectRoom& room = rooms_[lines_.size()];
    Ledger::Line& line = lines_.add();
    line.rule = rule.counts;
    line.subject =
        subject_of(key_body(bill_.charges[charge].key, limit.suffix), *rule.per, book_.policy().identity, room);
    line.sums = sums;
  }
  // Adds a line for an unlimited rule or plan, less what was entered before.
  void add(const FreeCharge& free, std::int64_t before = 0) {
    const BookRule& rule = book_.rule(free.rule);
    if (free.cost == before || rule.rule->by_hand) return;
    SubjectRoom& room = rooms_[lines_.size()];
    Ledger::Line& line = lines_.add();
    line.rule = rule.counts;
    line.subject = subject_of(key_body(free.key, {}), *rule.per, book_.policy().identity, room);
    line.sums = sums_of(free.cost - before);
  }
  // The limits of a rule are in ascending order. If they restart, another reading of the path has another key.
  bool is_first_of_rule(std::size_t charge) const {
    return charge == 0 || bill_.limits[charge]->rule != bill_.limits[charge - 1]->rule ||
           bill_.limits[charge] <= bill_.limits[charge - 1];
  }
  void enter(Impl& gate, Micros now) {
    if (lines_.size() > 0) gate.ledger.add(lines_.all(), now == Micros{0} ? gate.limiter.now() : now);
  }

 private:
  const Rulebook& book_;
  const Bill& bill_;
  Few<Ledger::Line, 2 * kChargesMax> lines_;
  std::array<SubjectRoom, 2 * kChargesMax> rooms_;
};

void Gate::Impl::post(const Bill& bill, const Answer& answer, Micros now, PostFree free) noexcept {
  const bool has_any = bill.charges.size() > 0 || (bill.free.size() > 0 && free == PostFree::yes);
  if (!ledger.is_on() || !has_any) return;
  Lines lines(*answer.rules, bill);
  if (answer.why == Why::limited) {
    lines.add(answer.binding, {.denied = bill.charges[answer.binding].cost > 0 ? 1U : 0U});
  } else if (answer.allowed) {
    for (std::size_t i = 0; i < bill.charges.size(); ++i) {
      if (lines.is_first_of_rule(i)) lines.add(i, sums_of(bill.charges[i].cost));
    }
    for (const FreeCharge& one : bill.free) {
      if (free == PostFree::yes) lines.add(one);
    }
  }
  lines.enter(*this, now);
}

// Unlimited charges were not entered at the reservation, unless they had a limit then: the amount would be unknown
// now. For a rule's key, only the first reserved charge counts, because others came with a change of the rules.
void Gate::Impl::post_settled(const Bill& bill, const Answer& answer, std::span<const std::int64_t> reserved,
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

void Gate::Impl::post_part(const Bill& bill, const Answer& answer, std::span<const bool> is_new,
                           std::vector<std::string_view>& free_keys, Micros now) noexcept try {
  if (!ledger.is_on() || (bill.charges.size() == 0 && bill.free.size() == 0)) return;
  Lines lines(*answer.rules, bill);
  if (answer.why == Why::limited) {
    if (is_new[answer.binding]) lines.add(answer.binding, {.denied = bill.charges[answer.binding].cost > 0 ? 1U : 0U});
  } else if (answer.allowed) {
    for (std::size_t i = 0; i < bill.charges.size(); ++i) {
      if (is_new[i] && lines.is_first_of_rule(i)) lines.add(i, sums_of(bill.charges[i].cost));
    }
    for (const FreeCharge& one : bill.free) {
      if (std::ranges::find(free_keys, one.key) != free_keys.end()) continue;
      free_keys.push_back(one.key);
      lines.add(one);
    }
  }
  lines.enter(*this, now);
} catch (const std::exception&) {  // out of memory: it is not entered
}

void Gate::Impl::post_denial(const BookRule& rule, const Rulebook& book, std::string_view body, Micros now) noexcept {
  if (!ledger.is_on() || rule.rule->by_hand) return;
  SubjectRoom room;
  const Ledger::Line line{rule.counts, subject_of(body, *rule.per, book.policy().identity, room), {.denied = 1}};
  ledger.add({&line, 1}, now);
}

namespace {

// The first and last day of the query, as numbers. Also sets `from` and `to` of the report.
Result<std::pair<std::int64_t, std::int64_t>> days_of(const SpendingQuery& query, std::int64_t today,
                                                      SpendingReport& out) {
  std::int64_t to = today;
  if (!query.to.empty()) {
    const auto day = parse_day(query.to);
    if (!day) return fail(day.error());
    to = *day;
  }
  const auto days = query.days > 0 ? static_cast<std::int64_t>(std::min<std::size_t>(query.days, 36'500)) : kDaysAsked;
  std::int64_t from = std::max<std::int64_t>(to - days + 1, 0);
  if (!query.from.empty()) {
    const auto day = parse_day(query.from);
    if (!day) return fail(day.error());
    from = *day;
  }
  out.from = day_text(from);
  out.to = day_text(to);
  if (from > to)
    return fail(ErrorCode::invalid_argument, "the first day, " + out.from + ", is after the last, " + out.to);
  return std::pair{from, to};
}

}  // namespace

std::optional<Error> refuse_spending(std::string_view text) {
  auto accounts = parse_accounts(text);
  if (accounts) return {};
  return std::move(accounts.error());
}

Result<SpendingReport> Gate::spending(const SpendingQuery& query, std::span<const std::string> others) const noexcept {
  return guarded([&]() -> Result<SpendingReport> {
    Ledger& ledger = impl_->ledger;
    if (!ledger.is_on())
      return fail(ErrorCode::not_found,
                  "usage is not counted; set the number of usage subjects above 0 (--usage-subjects)");
    SpendingReport out;
    std::string id;
    if (!query.subject.empty()) {
      auto parsed = parse_subject(query.subject);
      if (!parsed) return fail(std::move(parsed.error()));
      id = ledger.kept_id(*std::move(parsed));
    }
    const Micros now = impl_->limiter.now();
    const auto days = days_of(query, now / kDay, out);
    if (!days) return fail(days.error());
    ledger.enter_all(now);
    std::vector<DayAccounts> accounts = ledger.days(days->first, days->second);
    for (const std::string& text : others) {
      auto other = parse_accounts(text);
      if (!other) return fail(std::move(other.error()));
      ledger.hide(*other);
      if (other->day >= days->first && other->day <= days->second) accounts.push_back(*std::move(other));
    }
    if (query.subject.empty()) {
      report_top(accounts, query.rule, query.top, out);
    } else {
      report_subject(accounts, id, query.rule, out);
    }
    return out;
  });
}

Result<std::vector<SavedSpending>> Gate::unsaved_spending() noexcept {
  return guarded([&]() -> Result<std::vector<SavedSpending>> { return impl_->ledger.unsaved(impl_->limiter.now()); });
}

void Gate::spending_saved(std::int64_t day, std::uint64_t version) noexcept { impl_->ledger.saved(day, version); }

Result<void> Gate::take_spending(std::string text) noexcept {
  return guarded([&] { return impl_->ledger.take(std::move(text), impl_->limiter.now()); });
}

SpendingStats Gate::spending_stats() const noexcept { return impl_->ledger.stats(); }

}  // namespace weir
