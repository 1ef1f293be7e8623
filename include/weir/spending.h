// What each subject spent, by rule and day: the numbers that a bill or a mail to a good customer is made from.
//
//   weir::Gate gate(limiter, {.spending = {.subjects = 10'000}});
//   ...
//   const auto report = gate.spending({.subject = "user:42"});
//   for (const weir::Spending& one : report->rows) bill(one.day, one.rule, one.spent - one.error);
//
// A subject is whom a rule counts by: the first attribute of its `per` that says who, as `user:42`, `tenant:acme`,
// `api_key:sha256:…`, `ip:192.0.2.1`; of a rule that counts all together it is `*`. Spent are the permits of requests
// that passed, less those that came back: by a negative cost, a reservation that cost less, a cancelled one. What was
// denied costs nothing, also by a rule that counts denied requests. What a rule or a plan lets pass without any limit
// is spent, too; reserved, when it is settled. Rules in shadow, bans and limits that clients bring along are left out.
// Days are those of UTC, by the limiter's clock.
//
// Memory is bounded, so numbers are bounds: nobody spent more than `spent`, nor less than `spent - error`. The error is
// 0 as long as a day has not more subjects than there is room for. Plain values. Tested by tests/spending_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kSpendingSubjectsMax = 1'000'000;  // more are taken for so many

struct SpendingOptions {
  std::size_t subjects = 0;  // accounts of a day, one for each rule that a subject met; 0: nothing is counted
  std::size_t days = 35;     // that are kept, today included
};

// By one rule, on one day.
struct Spending {
  std::string day{};  // `2026-09-21`; of several days together, the first of them
  std::string rule{};
  std::string subject{};
  std::int64_t spent = 0;    // at most; below 0 on a day on which more came back than was taken
  std::uint64_t error = 0;   // at least that much less than this
  std::uint64_t denied = 0;  // requests that this rule denied, at most
  std::uint64_t denied_error = 0;
};

// A rule that does not know the subject on a day on which some had to be left out: it spent so much at most.
struct SpendingUnknown {
  std::string day{};
  std::string rule{};
  std::uint64_t at_most = 0;
};

struct SpendingQuery {
  std::string subject{};  // empty: those who spent most, over all days together
  std::string rule{};     // empty: all
  std::string from{};     // the first day; empty: the last 30
  std::string to{};       // the last day; empty: today
  std::size_t days = 0;   // without `from`: so many, the last of them `to`; 0: 30
  std::size_t top = 20;   // without a subject: so many
};

struct SpendingReport {
  std::string from{}, to{};                // the days that it is about
  std::vector<Spending> rows{};            // of a subject by day and rule; else the most first
  std::vector<SpendingUnknown> unknown{};  // only for a subject
};

// The accounts of a day, as text that a gate takes back. Many processes may each keep theirs.
struct SavedSpending {
  std::int64_t day = 0;       // since the epoch
  std::string date{};         // the same as `2026-09-21`
  std::uint64_t version = 0;  // of this day
  std::string text{};
};
// Why a text is none of these; nothing if it is. ErrorCode::out_of_range is one of a newer version.
std::optional<Error> refuse_spending(std::string_view text);

struct SpendingStats {
  std::size_t accounts = 0;   // of today
  std::size_t places = 0;     // that there are
  std::size_t days = 0;       // of which something is known
  std::uint64_t evicted = 0;  // accounts that made room for others, on all days
  std::uint64_t lost = 0;     // entries that there was no memory for
};

}  // namespace weir
