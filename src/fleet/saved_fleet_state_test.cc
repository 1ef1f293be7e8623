// Saved state is read as it was written, and a damaged file is refused.
#include "fleet/saved_fleet_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "algorithm/limit.h"
#include "fleet/redis_key.h"

namespace weir::fleet {
namespace {

UnsyncedCharge charge_of(const char* quota, Algorithm algorithm, std::string key) {
  return {.name = std::string(1, redis_mark(algorithm)) + std::move(key),
          .limit = compile(quota, algorithm).value(),
          .cost = 7,
          .until = Micros{1'794'701'843'991'953}};
}

SavedFleetState some() {
  return {.rank = {.rank = 2, .nodes = 3},
          .charges = {charge_of("10/hour", Algorithm::token_bucket, "user:1"),
                      charge_of("3/s burst 50", Algorithm::leaky_meter, std::string("a\0b\n \xff", 6)),
                      charge_of("100/min", Algorithm::sliding_log, ""),
                      charge_of("1000/calendar_month Europe/Berlin", Algorithm::fixed_window, "end 1"),
                      charge_of("5/calendar_day", Algorithm::fixed_window, "utc")}};
}

TEST(SavedFleetState, IsReadAsItWasWritten) {
  const SavedFleetState kept = some();
  const auto read = parse_saved_fleet_state(to_text(kept));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank, kept.rank);
  ASSERT_EQ(read->charges.size(), kept.charges.size());
  for (std::size_t i = 0; i < kept.charges.size(); ++i) {
    EXPECT_EQ(read->charges[i].name, kept.charges[i].name);
    EXPECT_TRUE(read->charges[i].limit == kept.charges[i].limit) << i;
    EXPECT_EQ(read->charges[i].cost, 7);
    EXPECT_EQ(read->charges[i].until, kept.charges[i].until);
  }
}

TEST(SavedFleetState, IsRefusedIfDamaged) {
  const std::string text = to_text(some());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(parse_saved_fleet_state(text.substr(0, i))) << i;
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_FALSE(parse_saved_fleet_state(flipped)) << i;
  }
  EXPECT_FALSE(parse_saved_fleet_state(""));
}

TEST(SavedFleetState, IsAFile) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("weir-saved-state-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  const std::string path = folder / "kept";
  EXPECT_EQ(read_saved_fleet_state(path).error().code, ErrorCode::not_found);
  ASSERT_TRUE(write_saved_fleet_state(path, {.rank = {.rank = 0, .nodes = 9}}));
  ASSERT_TRUE(write_saved_fleet_state(path, some()));
  EXPECT_EQ(read_saved_fleet_state(path)->charges.size(), some().charges.size());
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_FALSE(write_saved_fleet_state(folder / "none" / "kept", some()));
  std::ofstream(folder / "foreign") << "hunter2";
  std::filesystem::create_symlink(folder / "foreign", folder / "kept.new");
  ASSERT_TRUE(write_saved_fleet_state(path, some())) << "over a link, which is not followed";
  EXPECT_EQ(std::filesystem::file_size(folder / "foreign"), 7U);
  EXPECT_TRUE(read_saved_fleet_state(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weir::fleet
