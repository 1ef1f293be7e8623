// Reading within a bound, and replacing a file without a moment in which it is missing or incomplete. See file.h.
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/folder_fixture.h"

namespace weir::base {
namespace {

namespace fs = std::filesystem;

struct File : testing::Test {
  const TestFolder temporary;
  const std::string folder = temporary.path(), path = temporary.at("text");
};

TEST_F(File, IsReadUpToItsBound) {
  for (const std::size_t size : {0u, 1u, 4'095u, 4'096u, 10'000u}) {
    const std::string text(size, 'x');
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(read_file(path, size).value_or("?"), text);
    EXPECT_EQ(read_file(path, 1'000'000).value_or("?"), text);
  }
  EXPECT_EQ(read_file(path, 9'999).error().code, ErrorCode::out_of_range);
  EXPECT_EQ(read_file(path, 0).error().code, ErrorCode::out_of_range);
}

TEST_F(File, IsReadFromItsStart) {
  std::ofstream(path) << std::string(5'000, 'x') << "end";
  EXPECT_EQ(read_start(path, 0).value_or("?"), "");
  EXPECT_EQ(read_start(path, 4).value_or("?"), "xxxx");
  EXPECT_EQ(read_start(path, 5'003).value_or("?"), read_file(path, 5'003).value_or("none"));
  EXPECT_EQ(read_start(path, 9'000).value_or("?").size(), 5'003U);
  EXPECT_EQ(read_start(folder + "/none", 4).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_start(folder, 4).error().message, folder + ": is not a regular file");
}

TEST_F(File, IsReadOnlyIfRegular) {
  EXPECT_EQ(read_file(path, 10).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_file(folder, 10).error().message, folder + ": is not a regular file");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_file(path, 10).error().message, path + ": is not a regular file") << "and it does not block";
  std::ofstream(folder + "/target") << "text";
  fs::create_symlink(folder + "/target", folder + "/link");
  EXPECT_EQ(read_file(folder + "/link", 10).value_or("?"), "text");
  EXPECT_FALSE(read_file(folder + "/link", 10, Links::refused));
}

TEST_F(File, IsReplacedAsAWhole) {
  std::ofstream(folder + "/foreign") << "hunter2";
  fs::create_symlink(folder + "/foreign", path + ".new");
  const auto first = replace_file(path, "one");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(fs::file_size(folder + "/foreign"), 7U) << "a link is not followed";
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const auto second = replace_file(path, "two", ".other", FileLock::exclusive);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(read_file(path, 10).value_or("?"), "two");
  const Descriptor again(::open(path.c_str(), O_RDONLY));
  EXPECT_NE(::flock(again.get(), LOCK_EX | LOCK_NB), 0) << "the new file is locked";
  ASSERT_TRUE(write_all(second->get(), " and more"));
  EXPECT_EQ(read_file(path, 20).value_or("?"), "two and more");
}

TEST_F(File, StaysIfItCannotBeReplaced) {
  fs::create_directory(path);
  const auto replaced = replace_file(path, "text");
  ASSERT_FALSE(replaced);
  EXPECT_TRUE(replaced.error().message.starts_with(path + ": cannot be written")) << replaced.error().message;
  EXPECT_FALSE(fs::exists(path + ".new"));
  EXPECT_FALSE(replace_file(folder + "/none/text", "text"));
}

}  // namespace
}  // namespace weir::base
