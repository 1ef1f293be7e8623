// Tests that appended changes survive any end of the process, and that damage is dropped at the end, or reported.
#include "control/journal.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "base/folder_fixture.h"
#include "control/journal_fixture.h"
#include "sanitized.h"
#include "seed.h"
#include "weir/policy.h"

namespace weir::control {
namespace {

constexpr Micros kNow{1'800'000'000'000'000};

Change mode_change(const std::string& rule, const std::string& value) {
  return {.at = kNow, .kind = ChangeKind::mode, .what = rule + ": " + value, .rule = rule, .value = value};
}

struct JournalTest : testing::Test {
  // Creates a file of `n` changes, and returns its text.
  std::string filled(int n) {
    OpenJournal journal(folder.at("j"));
    for (int i = 0; i < n; ++i) EXPECT_TRUE(journal.append(mode_change("rule-" + std::to_string(i), "off")));
    return folder.read("j");
  }

  base::TestFolder folder;
};

TEST_F(JournalTest, AppendedChangesAreReadBack) {
  filled(3);
  OpenJournal again(folder.at("j"));
  ASSERT_EQ(again.changes().size(), 3U);
  EXPECT_EQ(again.changes()[2].rule, "rule-2");
  EXPECT_EQ(again.next_id(), 4U);
  EXPECT_TRUE(again.dropped().empty());
}

TEST_F(JournalTest, WithoutAFileKeepsChangesInMemory) {
  OpenJournal journal("");
  ASSERT_TRUE(journal.append(mode_change("a", "off")));
  EXPECT_EQ(journal.changes().size(), 1U);
}

TEST_F(JournalTest, ATruncatedFileKeepsItsCompleteLinesAndCanBeAppendedTo) {
  const std::string text = filled(3);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    SCOPED_TRACE(size);
    folder.write("j", text.substr(0, size));
    const auto whole = static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<long>(size), '\n'));
    OpenJournal journal(folder.at("j"));
    EXPECT_EQ(journal.changes().size(), whole);
    const bool is_cut = size > 0 && text[size - 1] != '\n';
    EXPECT_EQ(journal.dropped().empty(), !is_cut);
    if (size % 16 != 0) continue;  // writing is slow
    ASSERT_TRUE(journal.append(mode_change("next", "off")));
    const OpenJournal again(folder.at("j"));
    EXPECT_EQ(again.changes().size(), whole + 1);
  }
}

TEST_F(JournalTest, AFlippedBitIsRefusedOrCostsOnlyTheLastLine) {
  const std::string text = filled(4);
  const std::size_t last = text.rfind('\n', text.size() - 2) + 1;
  auto random = test::seeded();
  for (int i = 0; i < 500; ++i) {
    const auto at = static_cast<std::size_t>(test::pick(random, 0, static_cast<std::int64_t>(text.size()) - 1));
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << test::pick(random, 0, 7));
    folder.write("j", damaged);
    Journal journal;
    const auto opened = journal.open(folder.at("j"));
    if (at >= last - 1) {
      EXPECT_TRUE(!opened || journal.changes().size() >= 2) << at;
      continue;
    }
    ASSERT_FALSE(opened) << at;
    EXPECT_TRUE(opened.error().message.starts_with(folder.at("j") + ':')) << opened.error().message;
    EXPECT_NE(opened.error().message.find("remove the line"), std::string::npos);
    EXPECT_EQ(folder.read("j"), damaged) << "an unusable file is not modified";
  }
}

TEST_F(JournalTest, ReadsWhatAnotherProcessHasWritten) {
  OpenJournal one(folder.at("j")), other(folder.at("j"));
  ASSERT_TRUE(one.append(mode_change("a", "off")));
  ASSERT_TRUE(other.append(mode_change("b", "off")));
  EXPECT_EQ(other.changes().size(), 2U);
  EXPECT_EQ(other.changes()[1].id, 2U);
  EXPECT_FALSE(*other.catch_up());
  EXPECT_TRUE(*one.catch_up());
  EXPECT_EQ(one.changes(), other.changes());
}

TEST_F(JournalTest, RecreatesARemovedFile) {
  OpenJournal journal(folder.at("j"));
  ASSERT_TRUE(journal.append(mode_change("a", "off")));
  std::filesystem::remove(folder.at("j"));
  ASSERT_TRUE(journal.append(mode_change("b", "off")));
  OpenJournal again(folder.at("j"));
  EXPECT_EQ(again.changes().size(), 2U);
}

TEST_F(JournalTest, ShorteningKeepsChangesInEffect) {
  // Written directly, because ten thousand fsyncs take a while.
  std::string text;
  for (std::uint64_t id = 1; id <= Journal::kLinesMax; ++id) {
    Change change = mode_change(id == 5 ? "early" : "login", "off");
    change.id = id;
    text += to_line(change);
  }
  folder.write("j", text);
  OpenJournal journal(folder.at("j")), other(folder.at("j"));
  ASSERT_TRUE(journal.append(mode_change("login", "shadow")));
  EXPECT_EQ(journal.changes().size(), Journal::kLinesKept + 1);
  EXPECT_EQ(journal.changes().front().rule, "early");
  EXPECT_EQ(journal.changes().back().id, Journal::kLinesMax + 1);
  EXPECT_TRUE(*other.catch_up());
  EXPECT_EQ(other.changes(), journal.changes());
  ASSERT_TRUE(other.append(mode_change("b", "off")));
  EXPECT_TRUE(*journal.catch_up());
  EXPECT_EQ(journal.changes().back().rule, "b");
}

TEST_F(JournalTest, ShorteningKeepsCoveredChangesAndWhatAnUndoRestores) {
  constexpr std::uint64_t kLast = Journal::kLinesMax + 1;
  std::vector<Change> first = {mode_change("login", "shadow"), mode_change("login", "off"),
                               mode_change("api", "shadow"), mode_change("api", "off")};
  first[1].until = kNow + Micros{60'000'000};
  for (int i = 0; i < 100; ++i) first.push_back(mode_change("often", i % 2 == 0 ? "off" : "shadow"));
  std::string text;
  for (std::uint64_t id = 1; id < kLast; ++id) {
    Change change = id <= first.size() ? first[id - 1] : Change{.at = kNow, .kind = ChangeKind::reset};
    change.id = id;
    text += to_line(change);
  }
  folder.write("j", text);
  OpenJournal journal(folder.at("j"));
  ASSERT_TRUE(journal.append({.at = kNow, .kind = ChangeKind::undo, .undoes = 4}));
  const auto has = [&](std::uint64_t id) { return std::ranges::count(journal.changes(), id, &Change::id) == 1; };
  EXPECT_TRUE(has(1)) << "it takes effect again when the change that covers it expires";
  EXPECT_TRUE(has(2));
  EXPECT_TRUE(has(3));
  EXPECT_TRUE(has(4)) << "it takes effect again when the undo is undone";
  EXPECT_TRUE(has(kLast));
  EXPECT_TRUE(has(104) && has(103) && has(104 - Journal::kLayersKept));
  EXPECT_FALSE(has(103 - Journal::kLayersKept)) << "more changes below are not kept";
  EXPECT_EQ(journal.changes().size(), Journal::kLinesKept + 4 + 1 + Journal::kLayersKept);
}

TEST_F(JournalTest, WithoutAFileHasTheSameLimitOfBytes) {
  OpenJournal journal("");
  const std::string text(std::size_t{1} << 20, 'x');
  const std::size_t most = Journal::kBytesMax / text.size();
  const std::size_t appended = test::kIsSanitized ? most + 4 : 3 * most;
  for (std::size_t i = 0; i < appended; ++i) {
    ASSERT_TRUE(journal.append({.at = kNow, .kind = ChangeKind::policy, .text = text}));
    ASSERT_LE(journal.changes().size(), most);
  }
  EXPECT_EQ(journal.next_id(), appended + 1);
}

// Every stored line can be appended to a fleet's list and read there.
TEST_F(JournalTest, RefusesALineThatIsTooLong) {
  OpenJournal journal(folder.at("j"));
  ASSERT_TRUE(journal.append(mode_change("a", "off")));
  const auto with_text = [](std::size_t size) {
    return Change{.at = kNow, .kind = ChangeKind::policy, .text = std::string(size, '\n')};
  };
  EXPECT_TRUE(journal.append(with_text(kPolicyBytesMax))) << "as long as a policy can be";
  const std::string before = folder.read("j");
  const auto appended = journal.append(with_text(SharedChanges::kLineMax / 2));
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().code, ErrorCode::out_of_range);
  EXPECT_NE(appended.error().message.find("too long to be stored"), std::string::npos) << appended.error().message;
  EXPECT_EQ(folder.read("j"), before);
  EXPECT_EQ(journal.append(mode_change("b", "off")).value(), 3U);
}

TEST_F(JournalTest, WaitsForALockOnlyForALimitedTime) {
  OpenJournal one(folder.at("j")), other(folder.at("j"));
  {
    const auto held = other.lock();
    ASSERT_TRUE(held);
    const auto appended = one.append(mode_change("a", "off"));
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().code, ErrorCode::unavailable);
    EXPECT_NE(appended.error().message.find("has been locked by another process"), std::string::npos)
        << appended.error().message;
  }
  EXPECT_TRUE(one.append(mode_change("a", "off")));
}

TEST_F(JournalTest, OnlyOneOfTwoProcessesRecreatesARemovedFile) {
  OpenJournal one(folder.at("j"));
  ASSERT_TRUE(one.append(mode_change("a", "off")));
  OpenJournal other(folder.at("j"));
  ASSERT_TRUE(one.append(mode_change("b", "off")));
  std::filesystem::remove(folder.at("j"));
  ASSERT_TRUE(other.append(mode_change("c", "off"))) << "the new file has the line that `other` had not read yet";
  ASSERT_TRUE(one.append(mode_change("d", "off")));
  ASSERT_EQ(one.changes().size(), 4U);
  EXPECT_EQ(one.changes()[1].rule, "b");
  EXPECT_FALSE(std::filesystem::exists(folder.at("j.new")));
}

// Simulates a full disk: the write fails half way.
TEST_F(JournalTest, AFullDiskChangesNothing) {
  const std::string text = filled(2);
  OpenJournal journal(folder.at("j"));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{text.size() + 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const auto appended = journal.append(mode_change("c", "off"));
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(appended);
  EXPECT_NE(appended.error().message.find("so it is not made"), std::string::npos) << appended.error().message;
  EXPECT_EQ(journal.changes().size(), 2U);
  EXPECT_EQ(folder.read("j"), text);
  EXPECT_TRUE(journal.append(mode_change("c", "off")));
  EXPECT_EQ(journal.changes().back().id, 3U);
}

TEST_F(JournalTest, DoesNotModifyAFileOfAnotherProgram) {
  std::string damaged = filled(1);
  damaged[damaged.size() - 5] ^= 1;
  for (const std::string& text :
       {std::string("hunter2"), std::string("hunter2\n"), std::string("\n"), std::string("{\"id\":x}\n"),
        std::string("{\"id\":12,\"name\":\"bob\"}\n"), std::string("{}\n"), std::string(4096, '\0'),
        std::string("{\"id\":1,\"at\":\"yesterday\"}"), std::string("a\nb\n"), ' ' + damaged}) {
    folder.write("j", text);
    Journal journal;
    const auto opened = journal.open(folder.at("j"));
    ASSERT_FALSE(opened) << text;
    EXPECT_TRUE(opened.error().message.starts_with(folder.at("j") + ':')) << opened.error().message;
    EXPECT_EQ(folder.read("j"), text) << opened.error().message;
  }
  folder.write("j", damaged);
  const OpenJournal journal(folder.at("j"));  // of ours, the last line is dropped, as before
  EXPECT_FALSE(journal.dropped().empty());
}

TEST_F(JournalTest, RefusesASymbolicLink) {
  folder.write("foreign", "hunter2\n");
  folder.write("empty", "");
  for (const char* target : {"foreign", "empty", "nowhere"}) {
    std::filesystem::create_symlink(folder.at(target), folder.at("link"));
    Journal journal;
    const auto opened = journal.open(folder.at("link"));
    ASSERT_FALSE(opened) << target;
    EXPECT_EQ(opened.error().message,
              folder.at("link") + ": is a symbolic link; give --changes the path of the file itself");
    std::filesystem::remove(folder.at("link"));
  }
  EXPECT_EQ(folder.read("foreign"), "hunter2\n");
  EXPECT_EQ(folder.read("empty"), "");
  EXPECT_FALSE(std::filesystem::exists(folder.at("nowhere")));
}

TEST_F(JournalTest, DoesNotFollowALinkCreatedWhileTheFileIsOpen) {
  folder.write("foreign", "hunter2\n");
  OpenJournal journal(folder.at("j"));
  std::filesystem::remove(folder.at("j"));
  std::filesystem::create_symlink(folder.at("foreign"), folder.at("j.new"));
  ASSERT_TRUE(journal.append(mode_change("a", "off"))) << "appending creates the file again";
  EXPECT_EQ(folder.read("foreign"), "hunter2\n");
  std::filesystem::remove(folder.at("j"));
  std::filesystem::create_symlink(folder.at("foreign"), folder.at("j"));
  EXPECT_FALSE(journal.append(mode_change("b", "off")));
  EXPECT_EQ(folder.read("foreign"), "hunter2\n");
}

TEST_F(JournalTest, RefusesAFolderAndAMissingFolder) {
  Journal journal;
  EXPECT_FALSE(journal.open(folder.at("")));
  Journal other;
  EXPECT_FALSE(other.open(folder.at("none/j")));
}

}  // namespace
}  // namespace weir::control
