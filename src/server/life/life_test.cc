// Tests a server's life with fake loops: what they are asked to do, and how it ends if one of them hangs.
//
// Signals are real; the started processes are shells. tests/server/drain.sh tests the rest.
#include "server/life/life.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace weir {
namespace {

namespace fs = std::filesystem;

// Ends when asked to drain, or never.
class FakeLoop final : public Loop {
 public:
  FakeLoop(std::vector<Wish>& asked, bool hangs) : asked_(asked), hangs_(hangs) {}

  void open(Descriptor, Door) override {}
  Stopped run() override { return Stopped::drained; }
  LoopCounts& counts() override { return counts_; }
  void ask(Wish wish) override {
    asked_.push_back(wish);
    if (wish == Wish::drain && !hangs_) Life::tell_loop_ended();
  }

 private:
  std::vector<Wish>& asked_;
  bool hangs_;
  LoopCounts counts_;
};

class LifeTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const int signal : {SIGTERM, SIGINT, SIGUSR2, SIGHUP}) std::signal(signal, SIG_DFL);
  }

  void begin(bool hangs, std::function<void()> on_hangup) {
    loops.push_back(std::make_unique<FakeLoop>(asked, hangs));
    ASSERT_TRUE(life.open(std::move(on_hangup), loops.size()));
  }

  std::vector<Wish> asked;
  LifeSettings settings{};
  Life::Loops loops;
  HeldSockets sockets;
  Life life{settings, loops, sockets};
};
using LifeDeathTest = LifeTest;

TEST_F(LifeDeathTest, ASecondSignalEndsItThoughALoopHangs) {
  const auto live = [this] {
    alarm(120);
    begin(true, {});
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    life.run();
  };
  EXPECT_EXIT(live(), testing::ExitedWithCode(1), "second stop signal, exiting");
}

TEST_F(LifeTest, ASuccessorThatServesOutlivesASignalForItsPredecessor) {
  const fs::path served = fs::temp_directory_path() / ("weir_life_" + std::to_string(getpid()));
  settings.keeps_state = true;
  settings.drain_delay = Micros{0};
  settings.succession.command = {"sh", "-c", "printf r >&3; : >" + served.string() + "; sleep 3"};
  // During this, two events arrive: the successor is ready, and the signal, which is handled first.
  begin(false, [&] {
    for (int i = 0; i < 6'000 && !fs::exists(served); ++i) usleep(10'000);
    std::raise(SIGTERM);
  });
  std::raise(SIGUSR2);
  std::raise(SIGHUP);
  life.run();
  EXPECT_TRUE(fs::remove(served));
  EXPECT_EQ(asked, (std::vector{Wish::shut, Wish::drain})) << "as after any other handing over";
}

TEST_F(LifeDeathTest, AHangupWithNothingToReloadIsLoggedAndEndsNothing) {
  const auto live = [this] {
    alarm(120);
    settings.drain_delay = Micros{0};
    begin(false, {});
    std::raise(SIGHUP);
    std::raise(SIGTERM);
    life.run();
    _exit(0);
  };
  EXPECT_EXIT(live(), testing::ExitedWithCode(0), "nothing to reload");
}

}  // namespace
}  // namespace weir
