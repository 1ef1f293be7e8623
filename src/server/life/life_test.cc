// Tests a server's life with fake loops: the stages that it asks of them, and its end if a loop hangs.
//
// Signals are real; the started processes are shells. tests/server/drain.sh tests the rest.
#include "server/life/life.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

namespace weir::server::life {
namespace {

namespace fs = std::filesystem;

// Ends when asked to drain, or never.
class FakeLoop final : public loop::Loop {
 public:
  FakeLoop(std::vector<loop::StopStage>& asked, bool hangs) : asked_(asked), hangs_(hangs) {}

  void open(base::Descriptor, loop::ListenerSetup) override {}
  loop::Stopped run() override { return loop::Stopped::drained; }
  loop::LoopCounts& counts() override { return counts_; }
  void stop(loop::StopStage stage) override {
    asked_.push_back(stage);
    if (stage == loop::StopStage::drain && !hangs_) Life::note_loop_ended();
  }

 private:
  std::vector<loop::StopStage>& asked_;
  bool hangs_;
  loop::LoopCounts counts_;
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

  std::vector<loop::StopStage> asked;
  LifeSettings settings{};
  Life::Loops loops;
  HeldSockets sockets;
  Life life{settings, loops, sockets};
};
using LifeDeathTest = LifeTest;

TEST_F(LifeDeathTest, ASecondSignalEndsTheProcessThoughALoopHangs) {
  const auto live = [this] {
    alarm(120);
    begin(true, {});
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    life.run();
  };
  EXPECT_EXIT(live(), testing::ExitedWithCode(1), "second stop signal, exiting");
}

TEST_F(LifeTest, ASuccessorThatServesSurvivesASignalToItsPredecessor) {
  const fs::path served = fs::temp_directory_path() / ("weir_life_" + std::to_string(getpid()));
  settings.keeps_state = true;
  settings.drain_delay = Micros{0};
  settings.succession.command = {"sh", "-c", "printf r >&3; : >" + served.string() + "; sleep 3"};
  // While this runs, two events arrive: the successor is ready, and a signal. Life handles the signal first.
  begin(false, [&] {
    for (int i = 0; i < 6'000 && !fs::exists(served); ++i) usleep(10'000);
    std::raise(SIGTERM);
  });
  std::raise(SIGUSR2);
  std::raise(SIGHUP);
  life.run();
  EXPECT_TRUE(fs::remove(served));
  EXPECT_EQ(asked, (std::vector{loop::StopStage::shut, loop::StopStage::drain})) << "as after any other handover";
}

TEST_F(LifeDeathTest, AHangupWithNothingToReloadIsOnlyLogged) {
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
}  // namespace weir::server::life
