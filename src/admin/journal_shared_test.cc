// Journals of several servers with one list between them, which comes and goes. What real servers do with a real Redis
// is tested by tests/server/fleet_admin.sh.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "admin/journal.h"
#include "admin/overlay.h"
#include "admin/test_folder.h"
#include "seed.h"

namespace weir {
namespace {

class List final : public SharedChanges {
 public:
  Result<Lines> since(std::uint64_t number) override {
    if (is_away) return fail(ErrorCode::unavailable, "away");
    Lines out{.last = lines.empty() ? 0 : lines.rbegin()->first};
    for (const auto& [id, line] : lines) {
      if (id > number) out.lines.push_back(line);
    }
    return out;
  }
  Result<bool> append(std::uint64_t after, std::uint64_t number, const std::string& line) override {
    if (is_away || !may_append) return fail(ErrorCode::unavailable, "away");
    if ((lines.empty() ? 0 : lines.rbegin()->first) != after) return false;
    lines[number] = line;
    return true;
  }
  Result<void> drop(const std::vector<std::uint64_t>& numbers) override {
    for (const std::uint64_t one : numbers) lines.erase(one);
    return {};
  }
  std::map<std::uint64_t, std::string> lines;
  bool is_away = false, may_append = true;
};

Change mode(const std::string& rule, const std::string& value) {
  return {.at = Micros{1'000'000}, .kind = ChangeKind::mode, .what = rule, .rule = rule, .value = value};
}

std::string text_of(const Journal& journal) {
  std::string out;
  for (const Change& one : journal.changes()) {
    out += std::to_string(one.id) + one.what + (one.undoes > 0 ? "-" + std::to_string(one.undoes) : "") + ' ';
  }
  return out;
}

class JournalShared : public ::testing::Test {
 protected:
  List list_;
  TestFolder folder_;
};

TEST_F(JournalShared, WhatOneServerChangesOthersHave) {
  Journal one, other;
  ASSERT_TRUE(one.open("", &list_));
  ASSERT_TRUE(other.open(folder_.at("other"), &list_));
  EXPECT_EQ(one.append(mode("a", "off")).value(), 1u);
  EXPECT_EQ(other.catch_up().value(), true);
  EXPECT_EQ(other.catch_up().value(), false);
  EXPECT_EQ(other.append(mode("b", "off")).value(), 2u);
  EXPECT_EQ(one.append(mode("c", "off")).value(), 3u) << "it has looked first";
  EXPECT_EQ(other.catch_up().value(), true);
  EXPECT_EQ(text_of(one), "1a 2b 3c ");
  EXPECT_EQ(text_of(other), "1a 2b 3c ");
  Journal again;
  ASSERT_TRUE(again.open(folder_.at("other")));
  EXPECT_EQ(text_of(again), "1a 2b 3c ") << "the file is a copy";
}

TEST_F(JournalShared, WhatWasMadeApartComesTogether) {
  Journal one, other;
  ASSERT_TRUE(one.open(folder_.at("one"), &list_));
  ASSERT_TRUE(other.open(folder_.at("other"), &list_));
  EXPECT_EQ(one.append(mode("a", "off")).value(), 1u);
  EXPECT_TRUE(other.catch_up());
  list_.is_away = true;
  EXPECT_EQ(one.append(mode("b", "off")).value(), 2u) << "changes can be made all the same";
  EXPECT_EQ(other.append(mode("c", "off")).value(), 2u);
  Change undo{.at = Micros{1'000'000}, .kind = ChangeKind::undo, .what = "u", .undoes = 2};
  EXPECT_EQ(other.append(undo).value(), 3u);
  EXPECT_FALSE(one.catch_up());
  list_.is_away = false;
  EXPECT_TRUE(one.catch_up());
  EXPECT_EQ(other.catch_up().value(), true);
  EXPECT_EQ(one.catch_up().value(), true);
  EXPECT_EQ(text_of(one), "1a 2b 3c 4u-3 ") << "the undoing is still of what it undid";
  EXPECT_EQ(text_of(other), text_of(one));
}

// It was given a new id, and so was what it undoes; however often they try, it undoes that and not itself.
TEST_F(JournalShared, AnUndoingThatIsHandedOnLateUndoesTheSame) {
  Journal one, other;
  ASSERT_TRUE(one.open("", &list_));
  ASSERT_TRUE(other.open("", &list_));
  list_.is_away = true;
  EXPECT_EQ(one.append(mode("b", "off")).value(), 1u);
  EXPECT_TRUE(one.append({.at = Micros{1'000'000}, .kind = ChangeKind::undo, .what = "u", .undoes = 1}));
  list_.is_away = false;
  EXPECT_TRUE(other.append(mode("c", "off")));
  list_.may_append = false;  // read, but not written: a replica
  EXPECT_FALSE(one.catch_up());
  EXPECT_FALSE(one.catch_up());
  list_.may_append = true;
  EXPECT_TRUE(one.catch_up());
  EXPECT_EQ(text_of(one), "1c 2b 3u-2 ");
}

TEST_F(JournalShared, AListThatWasLostIsWrittenAnew) {
  Journal one, other;
  ASSERT_TRUE(one.open("", &list_));
  ASSERT_TRUE(other.open("", &list_));
  for (const char* rule : {"a", "b", "c"}) EXPECT_TRUE(one.append(mode(rule, "off")));
  EXPECT_TRUE(other.catch_up());
  list_.lines.erase(3);  // a failover
  EXPECT_TRUE(other.catch_up());
  EXPECT_TRUE(one.catch_up());
  EXPECT_EQ(list_.lines.size(), 3u);
  list_.lines.clear();
  EXPECT_TRUE(one.catch_up());
  EXPECT_TRUE(other.catch_up());
  EXPECT_EQ(list_.lines.size(), 3u);
  EXPECT_EQ(text_of(one), "1a 2b 3c ");
  EXPECT_EQ(text_of(other), "1a 2b 3c ");
}

TEST_F(JournalShared, AnOldCopyGivesWay) {
  {
    Journal one;
    ASSERT_TRUE(one.open(folder_.at("one"), &list_));
    for (const char* rule : {"a", "b"}) EXPECT_TRUE(one.append(mode(rule, "off")));
  }
  list_.lines.erase(1);  // as others have shortened it
  Journal other;
  ASSERT_TRUE(other.open("", &list_));
  EXPECT_TRUE(other.append(mode("c", "off")));
  Journal again;
  ASSERT_TRUE(again.open(folder_.at("one"), &list_));
  EXPECT_EQ(text_of(again), "2b 3c ");
  EXPECT_EQ(list_.lines.size(), 2u) << "and is not handed on";
}

TEST_F(JournalShared, ADamagedListIsRefusedAndChangesNothing) {
  Journal one;
  ASSERT_TRUE(one.open("", &list_));
  EXPECT_TRUE(one.append(mode("a", "off")));
  list_.lines[2] = "nonsense";
  const auto caught = one.catch_up();
  ASSERT_FALSE(caught);
  EXPECT_NE(caught.error().message.find("damaged"), std::string::npos) << caught.error().message;
  EXPECT_EQ(text_of(one), "1a ");
}

// However the list comes and goes, all have the same in the end, and nothing that was made is missing.
TEST_F(JournalShared, AllHaveTheSameInTheEnd) {
  std::mt19937_64 dice = test::seeded();
  for (int round = 0; round < 50; ++round) {
    List list;
    std::vector<Journal> journals(3);
    for (Journal& one : journals) ASSERT_TRUE(one.open("", &list));
    std::size_t made = 0;
    for (int step = 0; step < 40; ++step) {
      Journal& one = journals[dice() % 3];
      switch (dice() % 4) {
        case 0:
          list.is_away = !list.is_away;
          break;
        case 1:
          (void)one.catch_up();
          break;
        default:
          EXPECT_TRUE(one.append(mode("r" + std::to_string(made++), "off")));
      }
    }
    list.is_away = false;
    for (int i = 0; i < 2; ++i) {
      for (Journal& one : journals) EXPECT_TRUE(one.catch_up());
    }
    EXPECT_EQ(journals[0].changes().size(), made);
    for (Journal& one : journals) EXPECT_EQ(text_of(one), text_of(journals[0]));
  }
}

}  // namespace
}  // namespace weir
