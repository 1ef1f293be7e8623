// Tests the file of last known plans: it is read completely, or not at all.
#include "plans/plan_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "plans/plans_fixture.h"

namespace weir::plans {
namespace {

TEST(PlanMemory, IsReadAsItWasWritten) {
  const base::TestFolder folder;
  const std::string path = folder.at("plans");
  const std::vector<RememberedRow> rows = {{"user:42", "p3:pro"}, {"user:a\nb", std::string("p1:\0", 4)}, {"x", ""}};
  ASSERT_TRUE(write_plan_memory(path, "sqlite:a", rows));
  const auto read = read_plan_memory(path, "sqlite:a");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ((*read)[i].subject, rows[i].subject);
    EXPECT_EQ((*read)[i].text, rows[i].text);
  }
  struct stat about {};
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U) << "other users must not see who is on which plan";
  ASSERT_TRUE(write_plan_memory(path, "sqlite:a", {}));
  EXPECT_TRUE(read_plan_memory(path, "sqlite:a")->empty());
}

TEST(PlanMemory, BelongsToOneSource) {
  const base::TestFolder folder;
  ASSERT_TRUE(write_plan_memory(folder.at("plans"), "sqlite:a", {{"user:42", "p3:pro"}}));
  EXPECT_EQ(read_plan_memory(folder.at("plans"), "sqlite:b").error().code, ErrorCode::not_found);
  EXPECT_EQ(read_plan_memory(folder.at("plans"), "sqlite:").error().code, ErrorCode::not_found);
  EXPECT_EQ(read_plan_memory(folder.at("none"), "sqlite:a").error().code, ErrorCode::not_found);
}

TEST(PlanMemory, IsRefusedIfAnyByteIsDamaged) {
  const base::TestFolder folder;
  const std::string path = folder.at("plans");
  ASSERT_TRUE(write_plan_memory(path, "s", {{"user:42", "p3:pro"}, {"user:43", "p4:gold"}}));
  const std::string whole = folder.read("plans");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    folder.write("plans", whole.substr(0, i));
    EXPECT_FALSE(read_plan_memory(path, "s")) << "cut at " << i;
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    folder.write("plans", flipped);
    EXPECT_FALSE(read_plan_memory(path, "s")) << "flipped at " << i;
  }
  folder.write("plans", whole + "x");
  EXPECT_FALSE(read_plan_memory(path, "s"));
}

TEST(PlanMemory, TwoConcurrentWritersLeaveACompleteFile) {
  const base::TestFolder folder;
  const std::string path = folder.at("plans");
  const auto write = [&](const std::string& text) {
    const std::vector<RememberedRow> rows(2'000, {"user:42", text});
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(write_plan_memory(path, "s", rows));
  };
  std::thread other([&] { write("p3:pro"); });
  write("p10:enterprise");
  other.join();
  const auto read = read_plan_memory(path, "s");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->size(), 2'000u);
  for (const auto& left : std::filesystem::directory_iterator(folder.path())) EXPECT_EQ(left.path(), path);
}

TEST(PlanMemory, SaysWhyItCannotBeWritten) {
  const auto written = write_plan_memory("/proc/no/such/folder", "s", {});
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("/proc/no/such/folder"), std::string::npos);
}

}  // namespace
}  // namespace weir::plans
