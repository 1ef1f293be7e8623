// Each way in which a state file can be wrong, and each way to create it and find it again.

#include "table/file.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <vector>

#include "base/folder_fixture.h"
#include "table/arena.h"

namespace weir::table::file_test {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kHour = 3'600'000'000;
constexpr std::int64_t kNow = 1'700'000'000'000'000;
const ClockReading kReading{{1, 2}, kNow, 5 * kHour};

// The error message; empty if it succeeded.
template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "" : result.error().message;
}

class StateFile : public ::testing::Test {
 protected:
  Result<Mapping> open_it(const ClockReading& reading = kReading) {
    return open_file({path_.string(), 1'000}, reading);
  }
  Result<Mapping> open_as_it_is() { return open_file({.path = path_.string()}, kReading); }
  std::string refusal() { return message_of(open_as_it_is()); }
  void write(const std::string& bytes) { test_folder_.write("state", bytes); }
  std::string bytes() const { return test_folder_.read("state"); }
  // Makes a good file and changes its header.
  void spoil(const std::function<void(Header&)>& change) {
    ASSERT_TRUE(open_it());
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    Header header;
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    change(header);
    file.seekp(0);
    file.write(reinterpret_cast<const char*>(&header), sizeof(header));
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  const base::TestFolder test_folder_;
  const fs::path folder_ = test_folder_.path();
  fs::path path_ = folder_ / "state";
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

// Runs in a child, so that locks, limits and users are its own. True if `body` returns true there.
bool in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(MemoryTable, IsFreshAndItsArenaIsFree) {
  for (const std::uint64_t arena_bytes : {0u, 1u, 64 * 1025u, 3 * 1024 * 1024 + 64 * 5u}) {
    const auto mapping = map_memory(1'000, arena_bytes, kReading);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(mapping->region().pages(), 6);
    EXPECT_EQ(free_lines(mapping->region()), mapping->region().arena_lines());
    EXPECT_TRUE(mapping->is_sole() && mapping->is_new() && mapping->was_clean());
    EXPECT_EQ(mapping->fd(), -1);
  }
}

TEST(MemoryTable, RefusesMoreThanATableCanHave) {
  EXPECT_TRUE(has(message_of(map_memory(~std::uint64_t{0}, 0, kReading)), "at most"));
  EXPECT_TRUE(has(message_of(map_memory(1, ~std::uint64_t{0}, kReading)), "at most"));
}

TEST_F(StateFile, IsCreatedOnceAndKeepsItsContents) {
  std::uint64_t key = 0;
  {
    const auto mapping = open_it();
    ASSERT_TRUE(mapping) << mapping.error().message;
    EXPECT_TRUE(mapping->is_new() && mapping->is_sole() && mapping->was_clean());
    EXPECT_EQ(free_lines(mapping->region()), mapping->region().arena_lines());
    EXPECT_EQ(fs::file_size(path_), mapping->region().bytes());
    EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    key = mapping->region().header().hash_key[0];
    EXPECT_NE(key, 0);
    mapping->region().page(5).slots[62][3].state = 42;
  }
  const auto again = open_as_it_is();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->is_new());
  EXPECT_EQ(again->region().header().hash_key[0], key);
  EXPECT_EQ(again->region().page(5).slots[62][3].state, 42);
  EXPECT_EQ(files(), 1);
}

TEST_F(StateFile, HasItsSpaceFromTheBeginning) {
  ASSERT_TRUE(open_it());
  struct stat info {};
  stat(path_.c_str(), &info);
  EXPECT_GE(info.st_blocks * 512, info.st_size);
}

TEST_F(StateFile, RecordsWhetherItWasClosedCleanly) {
  open_it()->mark_clean();
  EXPECT_TRUE(open_it()->was_clean());  // does not mark it
  EXPECT_FALSE(open_it()->was_clean());
}

TEST_F(StateFile, IsNotMarkedCleanWhileOthersUseIt) {
  auto first = open_it();
  first->share();
  auto second = open_it();
  EXPECT_FALSE(first->try_alone());
  first->mark_clean();
  EXPECT_EQ(second->region().header().clean, kInUse);
  *first = Mapping();
  EXPECT_TRUE(second->try_alone());
  second->mark_clean();
  EXPECT_EQ(second->region().header().clean, kClean);
}

TEST_F(StateFile, StaysMarkedDamagedUntilItIsRepaired) {
  auto first = open_it();
  first->share();
  first->note_damage();
  first->note_damage();
  EXPECT_TRUE(first->try_alone());
  first->mark_clean();
  EXPECT_EQ(first->region().header().clean, kDamaged);
  *first = Mapping();
  const auto again = open_it();
  EXPECT_FALSE(again->was_clean());
  EXPECT_FALSE(again->is_torn());
}

TEST_F(StateFile, AdmitsOtherUsersOnceTheFirstShares) {
  auto first = open_it();
  ASSERT_TRUE(first->is_sole());
  first->share();
  EXPECT_FALSE(first->is_sole());
  const auto second = open_it();
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_sole());
  second->region().page(0).slots[0][0].state = 7;
  EXPECT_EQ(first->region().page(0).slots[0][0].state, 7);
}

TEST_F(StateFile, OfFourProcessesAtOnceIsOneGoodFile) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    auto mapping = open_it();
    if (mapping) mapping->share();
    _exit(mapping && free_lines(mapping->region()) == mapping->region().arena_lines() ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 1);
  EXPECT_TRUE(open_it());
}

TEST_F(StateFile, OfAChildIsItsOwnAfterReopening) {
  auto mapping = open_it();
  mapping->share();
  ASSERT_TRUE(try_lock_participant(mapping->fd(), 3));
  EXPECT_TRUE(in_child([&] {
    const bool shared_before = try_lock_participant(mapping->fd(), 3);  // the parent's own lock
    return shared_before && mapping->reopen_after_fork() && !mapping->is_sole() &&
           !try_lock_participant(mapping->fd(), 3) && try_lock_participant(mapping->fd(), 4);
  }));
  unlock_participant(mapping->fd(), 3);
  EXPECT_TRUE(in_child([&] { return mapping->reopen_after_fork() && try_lock_participant(mapping->fd(), 3); }));
  EXPECT_TRUE(try_lock_participant(mapping->fd(), 4)) << "the first child has ended, and released its lock";
}

// A process that waits for the lock of a file that is being replaced must not end up with the old file.
TEST_F(StateFile, IsOpenedByItsCurrentNameAfterWaitingForItsLock) {
  auto old = open_it();
  const pid_t child = fork();
  if (child == 0) {
    *old = Mapping();  // the parent keeps its lock
    const auto mapping = open_it();
    _exit(mapping && mapping->region().header().hash_key[0] == 77 ? 0 : 1);
  }
  auto draft = Draft::make(path_.string(), {6, 6, 1024}, {{77, 78}, kNow}, kReading);
  ASSERT_TRUE(draft && draft->replace());
  *old = Mapping();
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(StateFile, ThatIsPublishedSecondDoesNotReplaceTheFirst) {
  auto late = Draft::make(path_.string(), {1, 1, 1024}, {{77, 78}, kNow}, kReading);
  ASSERT_TRUE(open_it());
  const auto published = late->publish();
  EXPECT_TRUE(published && !*published);
  EXPECT_NE(open_it()->region().header().hash_key[0], 77);
  EXPECT_EQ(files(), 1);
}

// Refusals ------------------------------------------------------------------------------------------------------------

TEST_F(StateFile, ThatIsADirectoryIsRefused) {
  fs::create_directory(path_);
  EXPECT_TRUE(has(refusal(), "is a directory; name a file")) << refusal();
}

TEST_F(StateFile, ThatIsNoRegularFileIsRefused) {
  mkfifo(path_.c_str(), 0600);
  EXPECT_TRUE(has(refusal(), "is not a regular file")) << refusal();
}

TEST_F(StateFile, ThatIsALinkToNothingIsRefused) {
  fs::create_symlink(folder_ / "nothing", path_);
  EXPECT_TRUE(has(refusal(), "dangling link")) << refusal();
  EXPECT_EQ(files(), 1);
}

TEST_F(StateFile, InAFolderThatIsNotThereIsRefused) {
  path_ = folder_ / "nowhere" / "state";
  EXPECT_TRUE(has(refusal(), "does not exist; create it first")) << refusal();
}

TEST_F(StateFile, ThatMayNotBeReadOrWrittenIsRefused) {
  ASSERT_TRUE(open_it());
  fs::permissions(folder_, fs::perms::all);
  const auto as_stranger = [&](std::string_view expected) {
    return in_child([&] { return (geteuid() != 0 || seteuid(65'534) == 0) && has(refusal(), expected); });
  };
  fs::permissions(path_, fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read);
  EXPECT_TRUE(as_stranger("is read-only (Permission denied); allow this user to write it"));
  fs::permissions(path_, fs::perms::none);
  EXPECT_TRUE(as_stranger("cannot be read (Permission denied); allow this user to read and write it"));
  fs::remove(path_);
  fs::permissions(folder_, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec);
  EXPECT_TRUE(as_stranger("allow this user to write to"));
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(StateFile, ThatIsEmptyOrForeignIsRefusedAndLeftAlone) {
  write("");
  EXPECT_TRUE(has(refusal(), "is empty; remove it")) << refusal();
  for (const std::string& foreign : {std::string("x"), std::string(100'000, 'x'), std::string(4096, '\0')}) {
    write(foreign);
    EXPECT_TRUE(has(refusal(), "is not a state file of Weir")) << refusal();
    EXPECT_EQ(bytes(), foreign);
  }
}

TEST_F(StateFile, OfAnotherVersionIsRefused) {
  spoil([](Header& header) { header.version = kVersion + 1; });
  EXPECT_TRUE(has(refusal(), "newer Weir (layout 3; this version knows layouts up to 2)")) << refusal();
  fs::remove(path_);
  spoil([](Header& header) {
    header.version = kVersionOldest - 1;
    header.checksum = checksum_of(header);
  });
  EXPECT_TRUE(has(refusal(), "older Weir (layout 0; this version reads layouts from 2 on)")) << refusal();
}

TEST_F(StateFile, ThatIsTruncatedIsRefused) {
  ASSERT_TRUE(open_it());
  const std::uint64_t whole = fs::file_size(path_);
  for (const std::uint64_t size : {whole - 1, whole / 2, std::uint64_t{4096}, std::uint64_t{sizeof(Header)}}) {
    fs::resize_file(path_, size);
    EXPECT_TRUE(has(refusal(), "is truncated: " + std::to_string(size))) << refusal();
  }
  for (const std::uint64_t size : {std::uint64_t{100}, std::uint64_t{20}, std::uint64_t{8}, std::uint64_t{1}}) {
    fs::resize_file(path_, size);
    EXPECT_NE(refusal(), "") << size;
    EXPECT_EQ(fs::file_size(path_), size);
  }
}

TEST_F(StateFile, WithADamagedHeaderIsRefused) {
  for (std::size_t at = offsetof(Header, header_bytes); at < offsetof(Header, checksum) + 8; ++at) {
    fs::remove(path_);
    spoil([at](Header& header) { reinterpret_cast<char*>(&header)[at] ^= 0x40; });
    EXPECT_TRUE(has(refusal(), "checksum")) << at << ": " << refusal();
  }
}

TEST_F(StateFile, OfAnotherLayoutIsRefused) {
  const std::vector<std::function<void(Header&)>> changes = {
      [](Header& header) { header.header_bytes = 8192; },
      [](Header& header) { header.registry_entries += 1; },
      [](Header& header) { header.participants += 1; },
      [](Header& header) { header.participant_bytes += 64; },
      [](Header& header) { header.entry_bytes += 64; },
      [](Header& header) { header.pages = 0; },
      [](Header& header) { header.pages += 1; },
      [](Header& header) { header.pages = ~std::uint64_t{0} / 4096; },
      [](Header& header) { header.base_pages = 0; },
      [](Header& header) { header.base_pages = kPagesMax + 1; },
      [](Header& header) { header.arena_lines = kArenaLinesMax + 1; },
      [](Header& header) { header.arena_lines = 0; },
      [](Header& header) { header.bytes -= 4096; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    fs::remove(path_);
    spoil([&](Header& header) {
      changes[i](header);
      header.checksum = checksum_of(header);
    });
    EXPECT_TRUE(has(refusal(), "has a different layout")) << i << ": " << refusal();
  }
}

TEST_F(StateFile, IsNotOpenedForAnotherNumberOfKeys) {
  ASSERT_TRUE(open_it());
  EXPECT_TRUE(open_file({path_.string(), 6 * kKeysInPage}, kReading)) << "the same number of pages";
  const auto more = open_file({path_.string(), 5'000}, kReading);
  EXPECT_TRUE(has(message_of(more), "has capacity for 1134 keys, not 5000")) << message_of(more);
  EXPECT_TRUE(has(message_of(more), "state resize " + path_.string() + " --keys 5000`"));
  const auto memory = open_file({path_.string(), 0, 1 << 20}, kReading);
  const std::string whole = std::to_string(layout_of(6, (1 << 20) / sizeof(Line)).bytes);
  EXPECT_TRUE(has(message_of(memory), "bytes for logs, not 1048576: ")) << message_of(memory);
  EXPECT_TRUE(has(message_of(memory), " --memory " + whole + "`")) << message_of(memory);
}

TEST_F(StateFile, TooLargeForTheProcessIsRefusedWithoutASignal) {
  EXPECT_TRUE(in_child([&] {
    const rlimit limit{1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    return has(refusal(), "ulimit -f");
  }));
  EXPECT_EQ(files(), 0);
}

TEST_F(StateFile, OnAFullDiskIsRefusedAndLeavesNothing) {
  if (mount("none", folder_.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "may not mount a small disk";
  const std::string message = refusal();
  const std::size_t left = files();
  umount(folder_.c_str());
  EXPECT_TRUE(has(message, "the disk is full")) << message;
  EXPECT_EQ(left, 0);
}

// Time ----------------------------------------------------------------------------------------------------------------

std::int64_t time_of(const Mapping& mapping, const ClockReading& reading) {
  return reading.boot_us + mapping.region().header().clock_offset_us;
}

ClockReading later(std::int64_t elapsed_us, std::int64_t wall_step_us) {
  return {kReading.boot_id, kNow + elapsed_us + wall_step_us, kReading.boot_us + elapsed_us};
}

TEST_F(StateFile, IgnoresStepsOfTheWallClockWithinABoot) {
  ASSERT_TRUE(open_it());
  for (const std::int64_t step : {std::int64_t{0}, kHour, -kHour, -24 * kHour}) {
    const ClockReading reading = later(10'000'000, step);
    const auto mapping = open_it(reading);
    ASSERT_TRUE(mapping);
    EXPECT_EQ(time_of(*mapping, reading), kNow + 10'000'000) << step;
    EXPECT_FALSE(mapping->is_torn());
  }
}

TEST_F(StateFile, ContinuesFromTheLatestTimeAfterABoot) {
  for (const std::int64_t wall_us : {kNow + kHour, kNow - kHour, kNow - 24 * kHour, std::int64_t{0}, kTimeEnd + 5}) {
    fs::remove(path_);
    ASSERT_TRUE(open_it());
    const ClockReading reading{{3, 4}, wall_us, 7'000'000};
    const auto mapping = open_it(reading);
    ASSERT_TRUE(mapping);
    EXPECT_TRUE(mapping->is_torn());
    EXPECT_FALSE(mapping->was_clean());
    EXPECT_EQ(time_of(*mapping, reading), wall_us == kNow + kHour ? wall_us : kNow) << wall_us;
    EXPECT_EQ(mapping->region().header().boot_id[0], 3);
  }
}

TEST_F(StateFile, TreatsAnotherBootClockAsAnotherBoot) {  // a container with its own clock; a restored machine
  ASSERT_TRUE(open_it());
  const ClockReading reading{kReading.boot_id, kNow + kHour, 1'000'000};
  const auto mapping = open_it(reading);
  EXPECT_TRUE(mapping->is_torn());
  EXPECT_EQ(time_of(*mapping, reading), kNow + kHour);
}

std::string text_of(std::int64_t us) {
  const std::time_t seconds = us / 1'000'000;
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", std::gmtime(&seconds))};
}

TEST_F(StateFile, ABootClockThatIsAheadDoesNotMoveTheTime) {  // without other users, as after a boot
  open_it()->region().header().time_namespace = 1;
  const ClockReading ahead = later(30 * 24 * kHour, -30 * 24 * kHour);
  const auto mapping = open_it(ahead);
  EXPECT_EQ(time_of(*mapping, ahead), kNow);
}

TEST_F(StateFile, IsSharedOnlyByUsersOfOneClock) {
  auto first = open_it();
  first->share();
  EXPECT_TRUE(open_it(later(kHour, 0))) << "no process has read the clock for an hour";
  EXPECT_TRUE(open_it(later(kHour, -kHour))) << "nor the wall clock, which was set back";
  // Another time namespace, or a restored container: its boot clock is ahead, the wall clock is that of all.
  first->region().header().time_namespace = 1;
  const auto ahead = open_it(later(kHour, -kHour));
  EXPECT_TRUE(has(message_of(ahead), "in use under another clock")) << message_of(ahead);
  EXPECT_TRUE(has(message_of(ahead), "the latest time in it is " + text_of(kNow) + ", ")) << message_of(ahead);
  EXPECT_TRUE(has(message_of(ahead), "it is " + text_of(kNow + kHour) + ";")) << message_of(ahead);
  first->region().header().latest_us = kNow + kHour;
  EXPECT_TRUE(open_it(later(kHour, -kHour))) << "the wall clock was set back, as the time of the table shows";
  first->region().header().latest_us = kNow;
  note_wall_clock(first->region().header(), later(kHour, -kHour));
  EXPECT_TRUE(open_it(later(kHour, -kHour))) << "and the sweep has recorded it";
  note_wall_clock(first->region().header(), kReading);
  const auto stranger = open_it({{3, 4}, kNow, kReading.boot_us});
  EXPECT_TRUE(has(message_of(stranger), "in use under another clock")) << message_of(stranger);
}

TEST_F(StateFile, WithADamagedClockStillHasAValidTime) {
  const std::int64_t wrong[] = {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), -1};
  for (const std::int64_t offset_us : wrong) {
    for (const std::int64_t latest_us : wrong) {
      fs::remove(path_);
      spoil([&](Header& header) { header.clock_offset_us = offset_us, header.latest_us = latest_us; });
      const auto mapping = open_it();
      ASSERT_TRUE(mapping);
      const std::int64_t time_us = time_of(*mapping, kReading);
      EXPECT_TRUE(time_us > 0 && time_us < kTimeEnd) << time_us;
    }
  }
}

}  // namespace
}  // namespace weir::table::file_test
