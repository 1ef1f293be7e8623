// Fixture of tests of Control: a Control over a config file, w.yaml, in its own folder, with a clock that the test
// moves. One thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "base/folder_fixture.h"
#include "control/control.h"

namespace weir {

struct ControlFixture : testing::Test {
  // What a new process would find.
  void restart() {
    control.reset();
    gate = std::make_unique<Gate>(limiter);
    control = std::make_unique<control::Control>(limiter, *gate, options);
    const auto started = control->start();
    ASSERT_TRUE(started) << started.error().message;
  }

  base::TestFolder folder;
  const control::Author alice{.who = "alice", .from = "127.0.0.1", .reason = "incident 12"};
  control::ControlOptions options{.file = folder.at("w.yaml"), .changes = folder.at("j")};
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{1'800'000'000'000'000});
  Limiter limiter{LimiterOptions{clock, 1000}};
  std::unique_ptr<Gate> gate;
  std::unique_ptr<control::Control> control;
};

}  // namespace weir
