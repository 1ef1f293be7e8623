// What tests of Control share: a Control over a config file, w.yaml, in a folder of its own, with a clock that stands
// still until the test moves it. One thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "control/control.h"
#include "control/test_folder.h"

namespace weir {

struct ControlFixture : testing::Test {
  // What a new process would find.
  void restart() {
    control.reset();
    gate = std::make_unique<Gate>(limiter);
    control = std::make_unique<Control>(limiter, *gate, options);
    const auto started = control->start();
    ASSERT_TRUE(started) << started.error().message;
  }

  TestFolder folder;
  const Author alice{.who = "alice", .from = "127.0.0.1", .reason = "incident 12"};
  ControlOptions options{.file = folder.at("w.yaml"), .changes = folder.at("j")};
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{1'800'000'000'000'000});
  Limiter limiter{LimiterOptions{clock, 1000}};
  std::unique_ptr<Gate> gate;
  std::unique_ptr<Control> control;
};

}  // namespace weir
