// The output of `weir state` for a file with known keys.

#include "limiter/state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "base/folder_fixture.h"
#include "table/table.h"
#include "weir/limit.h"

namespace weir::limiter::state_test {
namespace {

class State : public ::testing::Test {
 protected:
  State() {
    auto table = table::Table::open({.file = path_, .keys = 1'000});
    EXPECT_TRUE(table) << table.error().message;
    table_ = std::move(*table);
  }

  void charge(const std::string& key, std::string_view quota, std::int64_t cost) {
    const auto limit = compile(quota);
    ASSERT_TRUE(limit);
    charge(key, *limit, cost);
  }
  void charge(const std::string& key, const Limit& limit, std::int64_t cost) {
    table::Debit debit{.name = table_->key_name(limit.algorithm, key), .limit = &limit, .cost = cost};
    ASSERT_TRUE(table_->charge({&debit, 1}, {}, table_->clock()->now().count()));
  }
  std::string exported() {
    std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::tmpfile(), &std::fclose);
    EXPECT_TRUE(export_state(path_, file.get()));
    std::rewind(file.get());
    std::string text(4096, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    return text;
  }

  const base::TestFolder folder_;
  const std::string path_ = folder_.at("state");
  std::unique_ptr<table::Table> table_;
};

// The error message; empty if there was no error.
template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_F(State, IsExportedAsALineOfJsonForEachLiveKey) {
  charge("a", "100/calendar_year Asia/Tokyo", 30);
  const std::string text = exported();
  EXPECT_TRUE(has(text, "{\"name\":\"")) << text;
  EXPECT_TRUE(has(text,
                  "\"algorithm\":\"fixed_window\",\"limit_text\":\"100/calendar_year Asia/Tokyo\",\"limit\":100,"
                  "\"used\":30,\"remaining\":70,\"reset_after\":"))
      << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST_F(State, IsInspectedByLimitMostUsedFirst) {
  charge("a", "10/h burst 50", 1);
  charge("b", "5/day", 1);
  charge("c", "5/day", 1);
  const std::string in_use = *inspect_state(path_);
  EXPECT_TRUE(has(in_use, "yes; the numbers below change while they are read")) << in_use;
  table_.reset();
  const std::string text = *inspect_state(path_);
  EXPECT_TRUE(has(text, "in use      no\n")) << text;
  EXPECT_TRUE(has(text, "3 live, 0 expired; capacity 1,134")) << text;
  EXPECT_TRUE(has(text, "\n           2  sliding_window  5/day\n           1  token_bucket    10/h burst 50\n"))
      << text;
}

TEST_F(State, NamesThePhaseOfWindowsThatHaveOne) {
  const Limit years = compile("5/10years", Algorithm::fixed_window).value();
  charge("a", years, 1);
  charge("b", phased(years, 21'600'000'007).value(), 2);
  const std::string text = *inspect_state(path_);
  EXPECT_TRUE(has(text, "           1  fixed_window    5/10year\n")) << text;
  EXPECT_TRUE(has(text, "           1  fixed_window    5/10year, phase 21600.000007 s\n")) << text;
  const std::string lines = exported();
  EXPECT_TRUE(has(lines, "\"limit_text\":\"5/10year\",\"limit\":5,\"used\":1")) << lines;
  EXPECT_TRUE(has(lines, "\"limit_text\":\"5/10year\",\"phase\":21600.000007,\"limit\":5,\"used\":2")) << lines;
}

TEST_F(State, IsResizedOnlyWhileNoProcessUsesIt) {
  charge("a", "5/day", 3);
  EXPECT_TRUE(has(message_of(resize_state(path_, {.keys = 5'000})), "is in use"));
  table_.reset();
  const auto text = resize_state(path_, {.keys = 5'000});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_TRUE(has(*text, "capacity 5,103 keys")) << *text;
  EXPECT_TRUE(has(*text, "keys: 1 kept, 0 dropped (expired)")) << *text;
  EXPECT_TRUE(has(exported(), "\"used\":3,\"remaining\":2,"));
}

TEST_F(State, OfAnotherKindIsRefused) {
  for (const auto& result : {inspect_state(folder_.path()), resize_state(folder_.path(), {})}) {
    EXPECT_TRUE(has(message_of(result), "is a directory")) << message_of(result);
  }
  EXPECT_TRUE(has(message_of(inspect_state(path_ + "2")), "no such state file"));
}

}  // namespace
}  // namespace weir::limiter::state_test
