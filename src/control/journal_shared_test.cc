// Tests journals of several servers that share a list, which is sometimes unavailable. tests/server/fleet_admin.sh
// tests real servers with a real Redis.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/folder_fixture.h"
#include "control/journal_fixture.h"
#include "control/overlay.h"
#include "seed.h"

namespace weir::control {
namespace {

class List final : public SharedChanges {
 public:
  Result<Lines> since(std::uint64_t number) override {
    ++asked;
    if (is_away) return fail(ErrorCode::unavailable, "away");
    Lines out{.last = lines.empty() ? 0 : lines.rbegin()->first};
    if (const auto at = lines.find(number); at != lines.end()) {
      out.tail = at->second.substr(at->second.size() - std::min(at->second.size(), kTail));
    }
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
    if (is_away) return fail(ErrorCode::unavailable, "away");
    for (const std::uint64_t one : numbers) lines.erase(one);
    return {};
  }
  // A failover to a replica that lacks the newest lines.
  void lose(std::size_t n) {
    for (; n > 0 && !lines.empty(); --n) lines.erase(std::prev(lines.end()));
  }
  std::map<std::uint64_t, std::string> lines;
  bool is_away = false, may_append = true;
  int asked = 0;
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
  base::TestFolder folder_;
};

TEST_F(JournalShared, OtherServersReceiveEveryChange) {
  OpenJournal one("", &list_), other(folder_.at("other"), &list_);
  EXPECT_EQ(one.append(mode("a", "off")).value(), 1u);
  EXPECT_EQ(other.catch_up().value(), true);
  EXPECT_EQ(other.catch_up().value(), false);
  EXPECT_EQ(other.append(mode("b", "off")).value(), 2u);
  EXPECT_EQ(one.append(mode("c", "off")).value(), 3u) << "the server reads the list first";
  EXPECT_EQ(other.catch_up().value(), true);
  EXPECT_EQ(text_of(one), "1a 2b 3c ");
  EXPECT_EQ(text_of(other), "1a 2b 3c ");
  OpenJournal again(folder_.at("other"));
  EXPECT_EQ(text_of(again), "1a 2b 3c ") << "the file is a copy";
}

TEST_F(JournalShared, MergesChangesMadeWhileTheListWasUnavailable) {
  OpenJournal one(folder_.at("one"), &list_), other(folder_.at("other"), &list_);
  EXPECT_EQ(one.append(mode("a", "off")).value(), 1u);
  EXPECT_TRUE(other.catch_up());
  list_.is_away = true;
  EXPECT_EQ(one.append(mode("b", "off")).value(), 2u) << "changes are possible without the list";
  EXPECT_EQ(other.append(mode("c", "off")).value(), 2u);
  Change undo{.at = Micros{1'000'000}, .kind = ChangeKind::undo, .what = "u", .undoes = 2};
  EXPECT_EQ(other.append(undo).value(), 3u);
  EXPECT_FALSE(one.catch_up());
  list_.is_away = false;
  EXPECT_TRUE(one.catch_up());
  EXPECT_EQ(other.catch_up().value(), true);
  EXPECT_EQ(one.catch_up().value(), true);
  EXPECT_EQ(text_of(one), "1a 2b 3c 4u-3 ") << "the undo still refers to the same change";
  EXPECT_EQ(text_of(other), text_of(one));
}

// The change got a new id, and so did the change that it undoes. After any number of attempts, it undoes that change
// and not itself.
TEST_F(JournalShared, AnUndoAppendedLateStillUndoesTheSameChange) {
  OpenJournal one("", &list_), other("", &list_);
  list_.is_away = true;
  EXPECT_EQ(one.append(mode("b", "off")).value(), 1u);
  EXPECT_TRUE(one.append({.at = Micros{1'000'000}, .kind = ChangeKind::undo, .what = "u", .undoes = 1}));
  list_.is_away = false;
  EXPECT_TRUE(other.append(mode("c", "off")));
  list_.may_append = false;  // readable, but not writable: a replica
  EXPECT_FALSE(one.catch_up());
  EXPECT_FALSE(one.catch_up());
  list_.may_append = true;
  EXPECT_TRUE(one.catch_up());
  EXPECT_EQ(text_of(one), "1c 2b 3u-2 ");
}

TEST_F(JournalShared, WritesALostListAgain) {
  OpenJournal one("", &list_), other("", &list_);
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

TEST_F(JournalShared, MergesAgainIfOtherLinesReplacedLostOnes) {
  std::vector<Journal> journals(4);
  for (Journal& one : journals) ASSERT_TRUE(one.open("", &list_));
  EXPECT_TRUE(journals[0].append(mode("a", "off")));
  EXPECT_TRUE(journals[3].catch_up()) << "the server has none of the lines that will be lost";
  for (const char* rule : {"b", "c"}) EXPECT_TRUE(journals[0].append(mode(rule, "off")));
  EXPECT_TRUE(journals[0].append({.at = Micros{1'000'000}, .kind = ChangeKind::undo, .what = "u", .undoes = 3}));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(journals[i].catch_up());
  list_.lose(3);
  for (const char* rule : {"d", "e", "f"}) EXPECT_TRUE(journals[3].append(mode(rule, "off")));
  EXPECT_EQ(journals[3].changes().size(), 4u) << "no other server has read the list yet";
  for (Journal& one : journals) EXPECT_EQ(one.catch_up().value(), true);
  for (Journal& one : journals) {
    EXPECT_EQ(text_of(one), "1a 2d 3e 4f 5b 6c 7u-6 ") << "each line appears once, though several servers had it";
    EXPECT_EQ(one.catch_up().value(), false);
  }
  const auto notes = journals[1].take_notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("2 (b) is now 5"), std::string::npos) << notes[0];
}

// Only the line before the compared one differs; the compared line has the same content.
TEST_F(JournalShared, AnEqualLineAfterOtherLinesIsADifferentLine) {
  OpenJournal one("", &list_), third("", &list_);
  for (const char* rule : {"a", "b"}) EXPECT_TRUE(one.append(mode(rule, "off")));
  EXPECT_TRUE(third.catch_up());
  list_.lines.clear();
  list_.lines[1] = to_line([] {
    Change change = mode("z", "off");
    change.id = 1;
    change.link = link_of(nullptr, change);
    return change;
  }());
  OpenJournal other("", &list_);
  EXPECT_TRUE(other.append(mode("b", "off")));
  EXPECT_EQ(text_of(other), "1z 2b ");
  EXPECT_EQ(one.catch_up().value(), true);
  EXPECT_EQ(third.catch_up().value(), true);
  EXPECT_EQ(text_of(one), "1z 2b 3a ");
  EXPECT_EQ(text_of(third), text_of(one));
}

// Its id was free, since a server has shortened the list; it is a different line all the same.
TEST_F(JournalShared, ALostLineAppendedAfterOtherLinesIsADifferentLine) {
  OpenJournal first("", &list_);
  for (const char* rule : {"a", "b", "c"}) EXPECT_TRUE(first.append(mode(rule, "off")));
  list_.lines.erase(2);
  OpenJournal one("", &list_), third("", &list_);
  list_.lose(1);
  OpenJournal other("", &list_);
  EXPECT_TRUE(other.append(mode("z", "off")));
  EXPECT_EQ(one.catch_up().value(), true);
  EXPECT_EQ(text_of(one), "1a 2z 3c ");
  EXPECT_EQ(third.catch_up().value(), true);
  EXPECT_EQ(text_of(third), text_of(one));
}

TEST_F(JournalShared, ChangesMadeDuringAnOutageSurviveARestart) {
  OpenJournal other("", &list_);
  {
    OpenJournal one(folder_.at("one"), &list_);
    EXPECT_TRUE(one.append(mode("a", "off")));
    list_.is_away = true;
    EXPECT_EQ(one.append(mode("b", "off")).value(), 2u);
  }
  {
    const OpenJournal one(folder_.at("one"), &list_);  // it has not met the list again
  }
  list_.is_away = false;
  for (const char* rule : {"c", "d"}) EXPECT_TRUE(other.append(mode(rule, "off")));
  OpenJournal one(folder_.at("one"), &list_);
  EXPECT_EQ(text_of(one), "1a 2c 3d 4b ");
  EXPECT_TRUE(other.catch_up());
  EXPECT_EQ(text_of(other), text_of(one));
}

TEST_F(JournalShared, AppendsChangesMadeBeforeTheFirstContactWithTheList) {
  OpenJournal other("", &list_);
  for (const char* rule : {"a", "b"}) EXPECT_TRUE(other.append(mode(rule, "off")));
  list_.lines.erase(1);  // another server has shortened the list
  list_.is_away = true;
  OpenJournal one(folder_.at("one"), &list_);
  EXPECT_EQ(one.append(mode("c", "off")).value(), 1u);
  list_.is_away = false;
  EXPECT_TRUE(one.catch_up());
  EXPECT_EQ(text_of(one), "2b 3c ");
}

// It does not come back, and a note reports it.
TEST_F(JournalShared, DropsAndReportsLinesThatOtherServersRemoved) {
  {
    OpenJournal one(folder_.at("one"), &list_);
    for (const char* rule : {"a", "b"}) EXPECT_TRUE(one.append(mode(rule, "off")));
    list_.is_away = true;
    EXPECT_TRUE(one.append(mode("own", "off")));
    list_.is_away = false;
  }
  OpenJournal other("", &list_);
  for (const char* rule : {"c", "d"}) EXPECT_TRUE(other.append(mode(rule, "off")));
  for (const std::uint64_t id : {2u, 3u}) list_.lines.erase(id);  // other servers have shortened the list
  OpenJournal again(folder_.at("one"), &list_);
  EXPECT_EQ(text_of(again), "1a 4d 5own ");
  const auto notes = again.take_notes();
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("2 (b)"), std::string::npos) << notes[0];
  EXPECT_NE(notes[1].find("3 (own) is now 5"), std::string::npos) << notes[1];
  EXPECT_TRUE(again.take_notes().empty());
}

// The answer was lost, or the process ended before it could record it.
TEST_F(JournalShared, DoesNotAppendALineTwiceIfTheReplyWasLost) {
  OpenJournal one(folder_.at("one"), &list_);
  EXPECT_TRUE(one.append(mode("a", "off")));
  list_.is_away = true;
  EXPECT_TRUE(one.append(mode("b", "off")));
  const std::string before = folder_.read("one");
  list_.is_away = false;
  EXPECT_TRUE(one.catch_up());
  folder_.write("two", before);
  OpenJournal two(folder_.at("two"), &list_);
  EXPECT_EQ(text_of(two), "1a 2b ");
  EXPECT_EQ(list_.lines.size(), 2u);
  EXPECT_EQ(folder_.read("two"), folder_.read("one"));
}

TEST_F(JournalShared, AChangeAsksAnUnavailableListOnce) {
  OpenJournal one("", &list_);
  list_.is_away = true;
  list_.asked = 0;
  EXPECT_TRUE(one.append(mode("a", "off")));
  EXPECT_EQ(list_.asked, 1);
}

TEST_F(JournalShared, AServerThatOnlyReadsShortensItsCopyToo) {
  OpenJournal reader(folder_.at("one"), &list_);
  Change last{};
  for (std::uint64_t id = 1; id <= Journal::kLinesMax + 1; ++id) {
    Change change = mode(id == 5 ? "early" : "login", "off");
    change.id = id;
    change.link = link_of(id == 1 ? nullptr : &last, change);
    list_.lines[id] = to_line(change);
    last = change;
  }
  EXPECT_EQ(reader.catch_up().value(), true);
  const std::size_t kept = Journal::kLinesKept + Journal::kLayersKept + 1;
  EXPECT_LE(reader.changes().size(), kept);
  EXPECT_EQ(reader.changes().front().what, "early") << "the change is still in effect";
  EXPECT_EQ(list_.lines.size(), reader.changes().size());
  EXPECT_EQ(reader.catch_up().value(), false);
}

TEST_F(JournalShared, DropsTheOldLinesOfAnOutdatedCopy) {
  {
    OpenJournal one(folder_.at("one"), &list_);
    for (const char* rule : {"a", "b"}) EXPECT_TRUE(one.append(mode(rule, "off")));
  }
  list_.lines.erase(1);  // another server has shortened the list
  OpenJournal other("", &list_);
  EXPECT_TRUE(other.append(mode("c", "off")));
  OpenJournal again(folder_.at("one"), &list_);
  EXPECT_EQ(text_of(again), "2b 3c ");
  EXPECT_EQ(list_.lines.size(), 2u) << "the outdated lines are not appended again";
}

TEST_F(JournalShared, ADamagedListIsRefusedAndChangesNothing) {
  OpenJournal one("", &list_);
  EXPECT_TRUE(one.append(mode("a", "off")));
  list_.lines[2] = "nonsense";
  const auto caught = one.catch_up();
  ASSERT_FALSE(caught);
  EXPECT_NE(caught.error().message.find("damaged"), std::string::npos) << caught.error().message;
  EXPECT_EQ(text_of(one), "1a ");
}

// Three servers, and a list that is sometimes unavailable and fails over; servers with files also restart.
class Fleet {
 public:
  // No path: in memory.
  Fleet(std::mt19937_64& dice, const std::string& path) : dice_(dice) {
    for (int i = 0; i < 3; ++i) {
      paths_.push_back(path.empty() ? path : path + std::to_string(i));
      journals_.push_back(std::make_unique<Journal>());
      EXPECT_TRUE(journals_.back()->open(paths_.back(), &list_));
    }
  }

  void step() {
    const std::size_t n = dice_() % 3;
    Journal& one = *journals_[n];
    switch (dice_() % 10) {
      case 0:
      case 1:
        list_.is_away = !list_.is_away;
        break;
      case 2:
      case 3:
        (void)one.catch_up();
        break;
      case 4:
        list_.lose(dice_() % 5);
        break;
      case 5:
        if (paths_[n].empty()) break;
        journals_[n] = std::make_unique<Journal>();
        EXPECT_TRUE(journals_[n]->open(paths_[n], &list_));
        break;
      case 6:
        if (!one.changes().empty()) undo(one);
        break;
      default:
        EXPECT_TRUE(one.append(mode("r" + std::to_string(made_++), "off")));
    }
  }

  void expect_one() {
    list_.is_away = false;
    for (int i = 0; i < 2; ++i) {
      for (auto& one : journals_) EXPECT_TRUE(one->catch_up());
    }
    const Journal& first = *journals_[0];
    for (auto& one : journals_) EXPECT_EQ(text_of(*one), text_of(first));
    EXPECT_EQ(list_.lines.size(), first.changes().size());
    EXPECT_EQ(first.changes().size(), made_);
    std::map<std::uint64_t, std::string> names;
    std::set<std::string> whats;
    for (const Change& change : first.changes()) {
      EXPECT_TRUE(whats.insert(change.what).second) << change.what << " twice";
      names[change.id] = change.what;
      if (change.undoes == 0) continue;
      EXPECT_TRUE(change.what.ends_with("undoes " + names[change.undoes])) << text_of(first);
    }
  }

 private:
  void undo(Journal& one) {
    // The list is read when the change is made, and may change the ids of others.
    auto lock = one.lock();
    ASSERT_TRUE(lock);
    const Change& target = one.changes()[dice_() % one.changes().size()];
    Change change{.at = Micros{1'000'000},
                  .kind = ChangeKind::undo,
                  .what = 'u' + std::to_string(made_++) + " undoes " + target.what,
                  .undoes = target.id};
    EXPECT_TRUE(one.append(*std::move(lock), std::move(change)));
  }

  std::mt19937_64& dice_;
  List list_;
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<Journal>> journals_;
  std::size_t made_ = 0;
};

// However often the list is unavailable, and whatever it loses, all servers have the same changes in the end, and
// none is missing: the server that made it still has it.
TEST_F(JournalShared, AllServersEndWithTheSameChanges) {
  std::mt19937_64 dice = test::seeded();
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    const bool has_files = round % 20 == 0;  // writing files is slow
    Fleet fleet(dice, has_files ? folder_.at(std::to_string(round) + '-') : "");
    for (int step = 0; step < 60; ++step) fleet.step();
    fleet.expect_one();
  }
}

}  // namespace
}  // namespace weir::control
