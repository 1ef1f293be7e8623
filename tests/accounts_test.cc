// Compares sheets of accounts with exact counts, on streams of every kind. Also tests the text format of accounts.
//
// Each promise of sheet.h is checked for every account, and for every subject without an account.
#include "usage/accounts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>

#include "policy/subject.h"
#include "seed.h"
#include "usage/sheet.h"

namespace weir {
namespace {

std::string subject(std::uint64_t n) { return *policy::parse_subject("user:" + std::to_string(n)); }

using Key = std::pair<std::string, std::string>;  // rule, subject

// A sheet, and the exact counts beside it.
struct Books {
  Books(std::size_t places, std::uint64_t secret) : sheet(20'000, places, secret) {}

  void add(const std::string& rule, const std::string& id, const usage::Sums& sums) {
    sheet.add(sheet.rule_of(rule), id, sums);
    truth[{rule, id}].add(sums);
    totals[rule].add(sums);
  }

  usage::Sheet sheet;
  std::map<Key, usage::Sums> truth;
  std::map<std::string, usage::Sums> totals;
};

constexpr std::uint64_t usage::Sums::*kSums[] = {&usage::Sums::charged, &usage::Sums::returned, &usage::Sums::denied};

// All that sheet.h promises.
void expect_true(const Books& books, const usage::DayAccounts& found, std::size_t places) {
  std::size_t accounts = 0;
  std::map<std::string, usage::Sums> floors;
  std::map<Key, usage::Sums> left = books.truth;
  for (const usage::RuleAccounts& rule : found.rules) {
    floors[rule.rule] = rule.floors;
    accounts += rule.accounts.size();
    for (const usage::Account& one : rule.accounts) {
      const auto at = left.find({rule.rule, one.subject});
      ASSERT_NE(at, left.end()) << "an account appears twice, or has no subject";
      for (const auto sum : kSums) {
        ASSERT_LE(at->second.*sum, one.sums.*sum);
        ASSERT_LE(one.errors.*sum, one.sums.*sum);
        ASSERT_LE(one.sums.*sum - one.errors.*sum, at->second.*sum);
      }
      left.erase(at);
    }
  }
  ASSERT_LE(accounts, places);
  for (const auto& [key, sums] : left) {
    for (const auto sum : kSums) ASSERT_LE(sums.*sum, floors[key.first].*sum);
  }
}

// Draws a subject: by Zipf, where few subjects make most requests, or each with the same chance.
std::uint64_t draw(std::mt19937_64& random, std::uint64_t subjects, bool is_zipf) {
  if (!is_zipf) return random() % subjects;
  const double part = std::uniform_real_distribution<double>(0, 1)(random);
  return static_cast<std::uint64_t>(std::pow(static_cast<double>(subjects), part)) % subjects;
}

TEST(Sheet, IsExactWhileThereIsRoom) {
  Books books(1'000, 1);
  std::mt19937_64 random = test::seeded();
  for (int i = 0; i < 20'000; ++i) {
    books.add(random() % 2 == 0 ? "a" : "b", subject(random() % 500), {random() % 9, random() % 2, random() % 3});
  }
  EXPECT_EQ(books.sheet.size(), books.truth.size());
  for (const usage::RuleAccounts& rule : books.sheet.copy().rules) {
    EXPECT_EQ(rule.floors, usage::Sums{});
    for (const usage::Account& one : rule.accounts) {
      EXPECT_EQ(one.sums, (books.truth[{rule.rule, one.subject}]));
      EXPECT_EQ(one.errors, usage::Sums{});
    }
  }
}

TEST(Sheet, HoldsItsBoundsWhoeverComes) {
  std::mt19937_64 random = test::seeded();
  for (int stream = 0; stream < 80; ++stream) {
    const std::size_t places = 1 + random() % 200;
    Books books(places, random());
    const std::uint64_t subjects = 1 + random() % 2'000, rules = 1 + random() % 6;
    const bool is_zipf = stream % 2 == 0;
    const std::uint64_t returns = random() % 3, denials = random() % 3;
    for (std::uint64_t i = 0, adds = random() % 10'000; i < adds; ++i) {
      const std::string rule = "r" + std::to_string(random() % rules);
      const std::string id = subject(draw(random, subjects, is_zipf));
      const std::uint64_t what = random() % 10;
      if (what < returns) {
        books.add(rule, id, {.returned = 1 + random() % 5});
      } else if (what < returns + denials) {
        books.add(rule, id, {.denied = 1});
      } else {
        books.add(rule, id, {.charged = random() % 20 == 0 ? 1'000 : 1 + random() % 3});
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_true(books, books.sheet.copy(), places)) << "stream " << stream;
  }
}

TEST(Sheet, TheErrorIsAtMostThePartOfOneAccount) {
  std::mt19937_64 random = test::seeded();
  for (const bool is_zipf : {true, false}) {
    constexpr std::size_t kPlaces = 100;
    Books books(kPlaces, random());
    for (int i = 0; i < 50'000; ++i) {
      books.add("r", subject(draw(random, 5'000, is_zipf)), {.charged = random() % 50 == 0 ? 100U : 1U});
    }
    const usage::DayAccounts found = books.sheet.copy();
    ASSERT_NO_FATAL_FAILURE(expect_true(books, found, kPlaces));
    for (const usage::Account& one : found.rules[0].accounts)
      EXPECT_LE(one.errors.charged, books.totals["r"].charged / kPlaces);
    EXPECT_LE(found.rules[0].floors.charged, books.totals["r"].charged / kPlaces);
    // A subject that used more than that has an account.
    for (const auto& [key, sums] : books.truth) {
      if (sums.charged <= books.totals["r"].charged / kPlaces) continue;
      const auto is_it = [&subject = key.second](const usage::Account& one) { return one.subject == subject; };
      EXPECT_TRUE(std::ranges::any_of(found.rules[0].accounts, is_it));
    }
  }
}

// A subject that only gets refunds, as of reservations of the day before, keeps an account as one that charges does.
TEST(Sheet, RefundsWeighAsMuchAsCharges) {
  std::mt19937_64 random = test::seeded();
  constexpr std::size_t kPlaces = 50;
  Books books(kPlaces, random());
  for (std::uint64_t i = 0; i < 20; ++i) books.add("r", subject(i), {.returned = 1'000'000 + i});
  for (int i = 0; i < 50'000; ++i) {
    const std::string id = subject(100 + draw(random, 5'000, i % 2 == 0));
    books.add("r", id,
              random() % 3 == 0 ? usage::Sums{.returned = 1 + random() % 9} : usage::Sums{.charged = 1 + random() % 9});
  }
  const usage::DayAccounts found = books.sheet.copy();
  ASSERT_NO_FATAL_FAILURE(expect_true(books, found, kPlaces));
  const std::uint64_t bound = (books.totals["r"].charged + books.totals["r"].returned) / kPlaces;
  std::size_t exact = 0;
  for (const usage::Account& one : found.rules[0].accounts) {
    EXPECT_LE(one.errors.charged, bound);
    EXPECT_LE(one.errors.returned, bound);
    exact += one.sums.returned >= 1'000'000 && one.errors == usage::Sums{} ? 1U : 0U;
  }
  EXPECT_EQ(exact, 20U);
}

TEST(Sheet, AFloodOfOneRuleTakesNothingFromAnother) {
  std::mt19937_64 random = test::seeded();
  Books books(200, random());
  for (int i = 0; i < 20'000; ++i) {
    books.add("addresses", subject(random()), {.charged = 1'000});
    if (i % 4 == 0) books.add("tenants", subject(random() % 100), {.charged = 1});
  }
  for (const usage::RuleAccounts& rule : books.sheet.copy().rules) {
    if (rule.rule != "tenants") continue;
    EXPECT_EQ(rule.accounts.size(), 100U);
    EXPECT_EQ(rule.floors, usage::Sums{});
    for (const usage::Account& one : rule.accounts) EXPECT_EQ(one.sums, (books.truth[{"tenants", one.subject}]));
  }
  ASSERT_NO_FATAL_FAILURE(expect_true(books, books.sheet.copy(), 200));
}

TEST(Sheet, MoreRulesThanPlacesAreBoundedTheSame) {
  std::mt19937_64 random = test::seeded();
  Books books(10, random());
  for (int i = 0; i < 5'000; ++i) books.add("r" + std::to_string(random() % 50), subject(random() % 3), {.charged = 2});
  ASSERT_NO_FATAL_FAILURE(expect_true(books, books.sheet.copy(), 10));
}

// New subjects that are only denied do not evict the accounts of subjects that used permits.
TEST(Sheet, DenialsOfNewSubjectsEvictNoAccount) {
  Books books(100, 7);
  for (std::uint64_t i = 0; i < 90; ++i) books.add("r", subject(i), {.charged = 5});
  for (std::uint64_t i = 0; i < 10'000; ++i) books.add("r", subject(1'000 + i), {.denied = 1});
  std::size_t exact = 0;
  const usage::DayAccounts found = books.sheet.copy();
  for (const usage::Account& one : found.rules[0].accounts) {
    exact += one.sums.charged == 5 && one.errors.charged == 0 ? 1U : 0U;
  }
  EXPECT_EQ(exact, 90U);
}

TEST(Sheet, SumsStopBeforeTheyOverflow) {
  usage::Sheet sheet(0, 10, 1);
  for (int i = 0; i < 9; ++i) sheet.add(sheet.rule_of("r"), subject(1), {.charged = INT64_MAX, .returned = UINT64_MAX});
  EXPECT_EQ(sheet.copy().rules[0].accounts[0].sums, (usage::Sums{usage::kSumMax, usage::kSumMax, 0}));
}

usage::DayAccounts some_accounts(std::mt19937_64& random, std::size_t places = 50) {
  Books books(places, random());
  for (int i = 0; i < 2'000; ++i) {
    std::string value(1 + random() % 80, 'x');
    for (char& c : value) c = static_cast<char>(random());
    const std::string id = random() % 2 == 0 ? subject(random() % 60) : *policy::parse_subject("tenant:" + value);
    books.add(random() % 2 == 0 ? "search" : "a/b:c", id, {random() % 9, random() % 2, random() % 2});
  }
  return books.sheet.copy();
}

TEST(Accounts, AreReadAsTheyWereWritten) {
  std::mt19937_64 random = test::seeded();
  for (int i = 0; i < 20; ++i) {
    const usage::DayAccounts accounts = some_accounts(random);
    const auto read = usage::parse_accounts(usage::to_text(accounts));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, accounts);
  }
}

TEST(Accounts, GoOnInAnotherSheet) {
  std::mt19937_64 random = test::seeded();
  for (const std::size_t places : {20U, 50U, 500U}) {
    Books books(50, random());
    for (int i = 0; i < 3'000; ++i)
      books.add("r" + std::to_string(i % 3), subject(random() % 100), {random() % 9, 0, 1});
    usage::Sheet next(20'000, places, random());
    next.take(books.sheet.copy());
    Books later(places, 1);
    later.truth = books.truth;
    for (int i = 0; i < 1'000; ++i) {
      const std::string rule = "r" + std::to_string(i % 3), id = subject(random() % 100);
      next.add(next.rule_of(rule), id, {.charged = 3});
      later.truth[{rule, id}].add({.charged = 3});
    }
    ASSERT_NO_FATAL_FAILURE(expect_true(later, next.copy(), places)) << places;
  }
}

// As after --usage-subjects is lowered: the first rule alone would fill the sheet.
TEST(Accounts, GoOnInASmallerSheetWithAPartForEachRule) {
  Books books(100, 1);
  for (std::uint64_t i = 0; i < 40; ++i) books.add("first", subject(i), {.charged = 100 + i});
  for (std::uint64_t i = 0; i < 5; ++i) books.add("second", subject(i), {.charged = 1 + i});
  Books later(20, 2);
  later.sheet.take(books.sheet.copy());
  later.truth = books.truth;
  for (std::uint64_t i = 0; i < 5; ++i) later.add("second", subject(100 + i), {.charged = 1});
  later.add("third", subject(7), {.charged = 1});
  const usage::DayAccounts found = later.sheet.copy();
  ASSERT_NO_FATAL_FAILURE(expect_true(later, found, 20));
  ASSERT_EQ(found.rules.size(), 3U);
  EXPECT_GE(found.rules[0].accounts.size(), 6U);
  EXPECT_LE(found.rules[0].accounts.size(), 10U);
  EXPECT_GE(found.rules[1].accounts.size(), 6U);
  EXPECT_EQ(found.rules[2].accounts.size(), 1U);
  for (const usage::RuleAccounts& rule : found.rules) {
    if (rule.rule == "first") continue;
    for (const usage::Account& one : rule.accounts) EXPECT_EQ(one.errors, usage::Sums{}) << "there was room for it";
  }
}

TEST(Accounts, WhatIsDamagedIsRefused) {
  std::mt19937_64 random = test::seeded();
  const std::string text = usage::to_text(some_accounts(random, 10));
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(usage::parse_accounts(text.substr(0, size)));
  for (int i = 0; i < 2'000; ++i) {
    std::string other = text;
    other[random() % other.size()] ^= static_cast<char>(1 << random() % 8);
    EXPECT_FALSE(usage::parse_accounts(other));
  }
  const auto newer = usage::parse_accounts("weir-usage 2\n");
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::out_of_range);
  EXPECT_NE(newer.error().message.find("newer"), std::string::npos);
  EXPECT_FALSE(usage::parse_accounts(""));
  EXPECT_FALSE(usage::parse_accounts(text + "x"));
}

TEST(Accounts, DaysHaveNames) {
  EXPECT_EQ(usage::day_text(0), "1970-01-01");
  EXPECT_EQ(*usage::parse_day("2026-09-21"), 20'717);
  EXPECT_EQ(usage::day_text(20'717), "2026-09-21");
  for (const char* const wrong : {"", "2026-9-21", "2026-02-30", "2026-09-21T00:00", "today"}) {
    EXPECT_FALSE(usage::parse_day(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace weir
