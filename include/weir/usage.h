// Usage by subject, rule and day: the numbers for billing, or for a mail to a customer.
//
//   weir::Gate gate(limiter, {.usage = {.subjects = 10'000}});
//   ...
//   const auto report = gate.usage({.subject = "user:42"});
//   for (const weir::UsageRow& one : report->rows) bill(one.day, one.rule, one.used - one.error);
//
// A subject is what a rule counts by: the first attribute of its `per` that identifies a client, as `user:42`,
// `tenant:acme`, `api_key:sha256:…`, `ip:192.0.2.1`. For a rule with one count for all requests it is `*`. `used`
// counts the permits of requests that passed, minus refunds: negative costs, the unused part of a reservation, a
// cancelled reservation. Denied requests cost nothing, not even under a rule that counts denied requests. Requests
// that an unlimited rule or plan lets pass are counted, too. Reservations are counted when they are settled. Rules in
// shadow mode, bans and limits that clients send are not counted. Days are UTC, by the limiter's clock.
//
// Memory is bounded, so the numbers are bounds: a subject used at most `used` and at least `used - error`. The
// error is 0 as long as a day needs no more accounts than UsageOptions::subjects. Plain values. Tested by
// tests/client_usage_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kUsageSubjectsMax = 1'000'000;  // a larger number means this many

struct UsageOptions {
  std::size_t subjects = 0;  // accounts per day: one for each pair of rule and subject; 0: counting is off
  std::size_t days = 35;     // to keep, including today
};

// Usage under one rule on one day.
struct UsageRow {
  std::string day{};  // `2026-09-21`; of several days together, the first of them
  std::string rule{};
  std::string subject{};
  std::int64_t used = 0;     // at most; negative if a day had more refunds than charges
  std::uint64_t error = 0;   // the true value is at most this much lower
  std::uint64_t denied = 0;  // requests that this rule denied, at most
  std::uint64_t denied_error = 0;
};

// The bound for a rule that has no account of the subject on a day when some accounts were evicted.
struct UsageUnknown {
  std::string day{};
  std::string rule{};
  std::uint64_t at_most = 0;
};

struct UsageQuery {
  std::string subject{};  // empty: the top subjects, over all days together
  std::string rule{};     // empty: all
  std::string from{};     // the first day; empty: the last 30 days
  std::string to{};       // the last day; empty: today
  std::size_t days = 0;   // without `from`: this many days up to `to`; 0: 30
  std::size_t top = 20;   // without a subject: at most this many rows
};

struct UsageReport {
  std::string from{}, to{};             // the days it covers
  std::vector<UsageRow> rows{};         // for a subject by day and rule; else highest first
  std::vector<UsageUnknown> unknown{};  // only for a subject
};

// The accounts of a day, as text that a gate can load again. Several processes may each save their own.
struct SavedUsage {
  std::int64_t day = 0;       // since the epoch
  std::string date{};         // the same as `2026-09-21`
  std::uint64_t version = 0;  // of this day
  std::string text{};
};
// Returns why a text is not a SavedUsage text; nothing if it is. ErrorCode::out_of_range: it has a newer version.
std::optional<Error> refuse_usage(std::string_view text);

struct UsageStats {
  std::size_t accounts = 0;   // today's
  std::size_t places = 0;     // capacity
  std::size_t days = 0;       // days with data
  std::uint64_t evicted = 0;  // accounts evicted for others, on all days
  std::uint64_t lost = 0;     // entries dropped for lack of memory
};

}  // namespace weir
