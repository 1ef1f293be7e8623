// Adds up accounts of several days and processes. See accounts.h.
//
// Pure; any thread. Tested by tests/client_usage_test.cc.
#include "usage/accounts.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "policy/subject.h"

namespace weir::usage {
namespace {

struct Known {
  Sums sums{}, errors{};
  bool is_known = false;

  void add(const Sums& more, const Sums& error) {
    sums.add(more);
    errors.add(error);
  }
};

// Subtracts refunds only as far as they are certain.
UsageRow row_of(const Known& known) {
  UsageRow row;
  row.used = static_cast<std::int64_t>(known.sums.charged) -
             static_cast<std::int64_t>(known.sums.returned - known.errors.returned);
  row.error = add_capped(known.errors.charged, known.errors.returned);
  row.denied = known.sums.denied;
  row.denied_error = known.errors.denied;
  return row;
}

// Sums only grow, so an earlier part can be subtracted.
Sums less(const Sums& all, const Sums& part) {
  return {all.charged - std::min(all.charged, part.charged), all.returned - std::min(all.returned, part.returned),
          all.denied - std::min(all.denied, part.denied)};
}

}  // namespace

void report_subject(std::span<const DayAccounts> days, std::string_view id, std::string_view rule, UsageReport& out) {
  std::map<std::pair<std::int64_t, std::string_view>, Known> found;
  for (const DayAccounts& day : days) {
    for (const RuleAccounts& of : day.rules) {
      if (!rule.empty() && of.rule != rule) continue;
      Known& known = found[{day.day, of.rule}];
      const auto account = std::ranges::find(of.accounts, id, &Account::subject);
      if (account == of.accounts.end()) {
        known.add(of.floors, of.floors);
        continue;
      }
      known.add(account->sums, account->errors);
      known.is_known = true;
    }
  }
  for (const auto& [key, known] : found) {
    if (!known.is_known) {
      if (known.sums.charged > 0)
        out.unknown.push_back({day_text(key.first), std::string(key.second), known.sums.charged});
      continue;
    }
    UsageRow& row = out.rows.emplace_back(row_of(known));
    row.day = day_text(key.first);
    row.rule = key.second;
    row.subject = policy::subject_text(id);
  }
}

void report_top(std::span<const DayAccounts> days, std::string_view rule, std::size_t n, UsageReport& out) {
  struct Sum {
    Known known{};
    Sums floors{};  // of the accounts that have it
  };
  struct OfRule {
    Sums floors{};
    std::unordered_map<std::string_view, Sum> subjects{};
  };
  std::map<std::string_view, OfRule> rules;
  for (const DayAccounts& day : days) {
    for (const RuleAccounts& of : day.rules) {
      if (!rule.empty() && of.rule != rule) continue;
      OfRule& sums = rules[of.rule];
      sums.floors.add(of.floors);
      for (const Account& account : of.accounts) {
        if (account.subject.empty()) continue;
        Sum& sum = sums.subjects[account.subject];
        sum.known.add(account.sums, account.errors);
        sum.floors.add(of.floors);
      }
    }
  }
  struct Found {
    std::int64_t sure;
    UsageRow row;
    std::string_view rule, subject;
  };
  std::vector<Found> found;
  for (auto& [name, sums] : rules) {
    for (auto& [subject, sum] : sums.subjects) {
      const Sums left_out = less(sums.floors, sum.floors);
      sum.known.add(left_out, left_out);
      UsageRow row = row_of(sum.known);
      const std::int64_t sure = row.used - static_cast<std::int64_t>(row.error);
      found.push_back({sure, std::move(row), name, subject});
    }
  }
  n = std::min(n, found.size());
  std::ranges::partial_sort(found, found.begin() + static_cast<std::ptrdiff_t>(n), [](const Found& a, const Found& b) {
    return std::tie(b.sure, b.row.used, a.rule, a.subject) < std::tie(a.sure, a.row.used, b.rule, b.subject);
  });
  found.resize(n);
  for (Found& one : found) {
    one.row.day = out.from;
    one.row.rule = one.rule;
    one.row.subject = policy::subject_text(one.subject);
    out.rows.push_back(std::move(one.row));
  }
}

}  // namespace weir::usage
