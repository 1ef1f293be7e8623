// Tests a folder of Envoy's files: which are read, their names, and which folders are watched.
#include "control/envoy_files.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/folder_fixture.h"

namespace weir::control {
namespace {

namespace fs = std::filesystem;

std::string names_of(const Result<std::vector<envoy::EnvoyFile>>& files) {
  if (!files) return files.error().message;
  std::string out;
  for (const envoy::EnvoyFile& file : *files) out += file.name.substr(file.name.rfind("weir-test-") + 17) + ' ';
  return out;
}

TEST(EnvoyFiles, AreReadFromTheWholeFolderSortedByName) {
  const base::TestFolder folder;
  fs::create_directories(folder.at("config/more"));
  fs::create_directories(folder.at("config/.git"));
  for (const char* name : {"b.yaml", "a.yml", "more/c.json", ".hidden.yaml", ".git/d.yaml", "README.md"}) {
    folder.write(std::string("config/") + name, name);
  }
  const auto files = read_envoy_files(folder.at("config"));
  EXPECT_EQ(names_of(files), "config/a.yml config/b.yaml config/more/c.json ");
  EXPECT_EQ((*files)[0].text, "a.yml");
  EXPECT_EQ(names_of(read_envoy_files(folder.at("config/b.yaml"))), "config/b.yaml ");
}

TEST(EnvoyFiles, FollowLinksToTheFolderAndToFiles) {
  const base::TestFolder folder;
  fs::create_directories(folder.at("..1"));
  folder.write("..1/edge.yaml", "one");
  fs::create_symlink("..1", folder.at("..data"));
  fs::create_symlink("..data/edge.yaml", folder.at("edge.yaml"));
  fs::create_symlink("..1", folder.at("current"));
  EXPECT_EQ(names_of(read_envoy_files(folder.at(""))), "/edge.yaml ");
  EXPECT_EQ(names_of(read_envoy_files(folder.at("current"))), "current/edge.yaml ");
  const std::string real = fs::canonical(folder.at("")).string();
  for (const std::string& part : {std::string("/..1"), std::string()}) {
    EXPECT_TRUE(envoy_folders(folder.at("current")).contains(real + part)) << part;
    EXPECT_TRUE(envoy_folders(folder.at("")).contains(real + part)) << part;
  }
}

TEST(EnvoyFiles, AreRefusedWhenThereAreNone) {
  const base::TestFolder folder;
  fs::create_directories(folder.at("empty"));
  EXPECT_NE(names_of(read_envoy_files(folder.at("empty"))).find("contains no .yaml, .yml or .json file"),
            std::string::npos);
  EXPECT_NE(names_of(read_envoy_files(folder.at("nowhere"))).find("cannot be opened"), std::string::npos);
  EXPECT_FALSE(envoy_folders(folder.at("nowhere")).empty()) << "the path may appear later";
}

TEST(EnvoyFiles, ArePathsRelativeToTheConfig) {
  EXPECT_EQ(envoy_path({.path = "envoy"}, "etc/weir.yaml"), "etc/envoy");
  EXPECT_EQ(envoy_path({.path = "envoy"}, "weir.yaml"), "envoy");
  EXPECT_EQ(envoy_path({.path = "/srv/envoy"}, "etc/weir.yaml"), "/srv/envoy");
  EXPECT_EQ(envoy_path({.path = "envoy"}, ""), "envoy");
}

}  // namespace
}  // namespace weir::control
