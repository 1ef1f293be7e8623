// Saved state is read as it was written, and a damaged file is refused.
#include "fleet/keepsake.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "algorithm/limit.h"
#include "fleet/redis_key.h"

namespace weir {
namespace {

Debt debt_of(const char* quota, Algorithm algorithm, std::string key) {
  return {.name = std::string(1, redis_mark(algorithm)) + std::move(key),
          .limit = compile(quota, algorithm).value(),
          .cost = 7,
          .until = Micros{1'794'701'843'991'953}};
}

Keepsake some() {
  return {.seat = {.rank = 2, .nodes = 3},
          .debts = {debt_of("10/hour", Algorithm::token_bucket, "user:1"),
                    debt_of("3/s burst 50", Algorithm::leaky_meter, std::string("a\0b\n \xff", 6)),
                    debt_of("100/min", Algorithm::sliding_log, ""),
                    debt_of("1000/calendar_month Europe/Berlin", Algorithm::fixed_window, "end 1"),
                    debt_of("5/calendar_day", Algorithm::fixed_window, "utc")}};
}

TEST(Keepsake, IsReadAsItWasWritten) {
  const Keepsake kept = some();
  const auto read = parse_keepsake(to_text(kept));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->seat, kept.seat);
  ASSERT_EQ(read->debts.size(), kept.debts.size());
  for (std::size_t i = 0; i < kept.debts.size(); ++i) {
    EXPECT_EQ(read->debts[i].name, kept.debts[i].name);
    EXPECT_TRUE(read->debts[i].limit == kept.debts[i].limit) << i;
    EXPECT_EQ(read->debts[i].cost, 7);
    EXPECT_EQ(read->debts[i].until, kept.debts[i].until);
  }
}

TEST(Keepsake, IsRefusedIfDamaged) {
  const std::string text = to_text(some());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(parse_keepsake(text.substr(0, i))) << i;
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_FALSE(parse_keepsake(flipped)) << i;
  }
  EXPECT_FALSE(parse_keepsake(""));
}

TEST(Keepsake, IsAFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("weir-keepsake-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "kept";
  EXPECT_EQ(read_keepsake(path).error().code, ErrorCode::not_found);
  ASSERT_TRUE(write_keepsake(path, {.seat = {.rank = 0, .nodes = 9}}));
  ASSERT_TRUE(write_keepsake(path, some()));
  EXPECT_EQ(read_keepsake(path)->debts.size(), some().debts.size());
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_FALSE(write_keepsake(folder / "none" / "kept", some()));
  std::ofstream(folder / "foreign") << "hunter2";
  std::filesystem::create_symlink(folder / "foreign", folder / "kept.new");
  ASSERT_TRUE(write_keepsake(path, some())) << "over a link, which is not followed";
  EXPECT_EQ(std::filesystem::file_size(folder / "foreign"), 7U);
  EXPECT_TRUE(read_keepsake(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weir
