// Tests that every way to replace a file is seen, and that the folders on the way to it are found.
#include "control/file_watch.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "base/folder_fixture.h"

namespace weir::control {
namespace {

namespace fs = std::filesystem;

constexpr int kLong = 10'000;

TEST(FileWatch, FindsTheFoldersOfEveryLink) {
  const base::TestFolder folder;
  fs::create_directories(folder.at("mount/..1"));
  folder.write("mount/..1/weir.yaml", "a");
  fs::create_symlink("..1", folder.at("mount/..data"));
  fs::create_symlink("..data/weir.yaml", folder.at("mount/weir.yaml"));
  fs::create_directories(folder.at("etc"));
  fs::create_symlink(folder.at("mount/weir.yaml"), folder.at("etc/link.yaml"));
  const std::string real = fs::canonical(folder.at("")).string();
  const auto folders = FileWatch::folders_of(folder.at("etc/link.yaml"));
  for (const char* part : {"/etc", "/mount", "/mount/..1"}) EXPECT_TRUE(folders.contains(real + part)) << part;
  fs::create_symlink("loop", folder.at("loop"));
  EXPECT_FALSE(FileWatch::folders_of(folder.at("loop")).empty()) << "a cycle of links ends";
}

TEST(FileWatch, SeesSavesRenamesRemovalsAndSwappedLinks) {
  const base::TestFolder folder;
  fs::create_directories(folder.at("..1"));
  fs::create_directories(folder.at("..2"));
  folder.write("..1/w", "a");
  folder.write("..2/w", "b");
  fs::create_symlink("..1", folder.at("..data"));
  fs::create_symlink("..data/w", folder.at("w"));
  FileWatch watch(folder.at("w"));
  EXPECT_FALSE(watch.wait(10));

  folder.write("..1/w", "saved");
  EXPECT_TRUE(watch.wait(kLong));
  folder.write("..1/w~", "renamed");
  fs::rename(folder.at("..1/w~"), folder.at("..1/w"));
  EXPECT_TRUE(watch.wait(kLong));
  fs::create_symlink("..2", folder.at("..data_tmp"));
  fs::rename(folder.at("..data_tmp"), folder.at("..data"));
  EXPECT_TRUE(watch.wait(kLong));
  folder.write("..2/w", "in the new folder");
  EXPECT_TRUE(watch.wait(kLong));
  fs::remove(folder.at("..2/w"));
  EXPECT_TRUE(watch.wait(kLong));
  folder.write("..2/w", "made anew");
  EXPECT_TRUE(watch.wait(kLong));
  EXPECT_FALSE(watch.wait(10));
}

TEST(FileWatch, WakeEndsAWait) {
  const FileWatch* woken = nullptr;
  FileWatch watch("");
  woken = &watch;
  std::jthread other([woken] { woken->wake(); });
  EXPECT_FALSE(watch.wait(kLong));
}

}  // namespace
}  // namespace weir::control
