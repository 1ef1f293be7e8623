// Records pass from thread to thread. No thread waits for one. Records of dead processes are taken over.
#include "table/seats.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/folder_fixture.h"
#include "on_threads.h"

namespace weir::table::seats_test {
namespace {

struct Place {
  explicit Place(Mapping given) : mapping(std::move(given)) {}
  Mapping mapping;
  Registry registry{mapping.region(), {}};
  Seats seats{mapping, registry};
};

std::unique_ptr<Place> in_memory() { return std::make_unique<Place>(std::move(*map_memory(100, 1 << 16))); }

TEST(Seats, GiveAThreadItsLastRecordAgain) {
  const auto place = in_memory();
  const std::uint64_t who = place->seats.sit_down()->who();
  EXPECT_EQ(place->seats.sit_down()->who(), who);
  auto mine = place->seats.sit_down();
  EXPECT_NE(place->seats.sit_down()->who(), who) << "taken";
}

TEST(Seats, AreNeverWaitedFor) {
  const auto place = in_memory();
  std::vector<Seats::Seat> all;
  for (std::uint64_t i = 0; i < kParticipants; ++i) {
    auto seat = place->seats.sit_down();
    ASSERT_TRUE(seat) << i;
    all.push_back(*std::move(seat));
  }
  const auto none = place->seats.sit_down();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::exhausted);
  EXPECT_NE(none.error().message.find("more than 256 threads"), std::string::npos);
  all.pop_back();
  EXPECT_TRUE(place->seats.sit_down()) << "a thread has returned its record";
}

TEST(Seats, AreUsedByOneThreadAtATime) {
  const auto place = in_memory();
  std::vector<std::atomic<int>> sitting(kParticipants);
  std::atomic<int> collisions{0};
  test::on_threads(4, [&](int) {
    for (int k = 0; k < 5'000; ++k) {
      auto seat = place->seats.sit_down();
      std::atomic<int>& here = sitting[seat->who()];
      if (here.fetch_add(1) != 0) ++collisions;
      here.fetch_sub(1);
    }
  });
  EXPECT_EQ(collisions, 0);
}

// Two openings of a file behave like two processes.
TEST(Seats, OfADeadProcessAreTakenOver) {
  const base::TestFolder folder;
  const std::string name = folder.at("state");
  auto one = std::make_unique<Place>(*open_file({name, 100, 1 << 16}));
  one->mapping.share();
  auto other = std::make_unique<Place>(*open_file({name, 0, 0}));
  const std::uint64_t who = one->seats.sit_down()->who();
  std::vector<Seats::Seat> rest;
  for (std::uint64_t i = 0; i + 1 < kParticipants; ++i) rest.push_back(*other->seats.sit_down());
  for (const Seats::Seat& seat : rest) EXPECT_NE(seat.who(), who) << "locked by the first process";
  EXPECT_FALSE(other->seats.sit_down());
  one.reset();
  EXPECT_EQ(other->seats.sit_down()->who(), who) << "its lock is gone";
}

}  // namespace
}  // namespace weir::table::seats_test
