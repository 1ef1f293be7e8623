// A temporary PostgreSQL server for one test, in its own folder, listening on a unix socket there.
//
// PostgreSQL refuses to run as root, so under root another user runs it. For tests only. One thread may use it.
// Tested through postgres_source_test.cc.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "plans/plans_fixture.h"
#include "plans/postgres_connection.h"

namespace weir::plans {

class TestPostgres {
 public:
  // The folder of PostgreSQL's programs; empty if not installed.
  static std::string programs() {
    std::string best;
    std::error_code none;
    for (const auto& version : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
      const std::string place = version.path() / "bin";
      if (std::filesystem::exists(place + "/initdb")) best = std::max(best, place);
    }
    return best;
  }

  explicit TestPostgres(const std::string& settings = "") : settings_(settings) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms{0777});
    EXPECT_TRUE(run("cp -a " + empty_data() + " " + data()));
    start();
  }
  // A standby of `primary`, which replays its writes.
  explicit TestPostgres(const TestPostgres& primary) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms{0777});
    EXPECT_TRUE(
        run(programs() + "/pg_basebackup --no-sync -c fast -R -h " + primary.folder_.path() + " -U weir -D " + data()));
    start();
  }
  TestPostgres& operator=(const TestPostgres&) = delete;
  ~TestPostgres() {
    resume();
    stop();
    run("rm -rf " + data());
  }

  void start() {
    EXPECT_TRUE(run(programs() + "/pg_ctl -D " + data() + " -w -t 60 -l " + folder_.at("log") + " -o \"-k " +
                    folder_.path() + " -c listen_addresses= -c fsync=off -c max_connections=8 " + settings_ +
                    "\" start"))
        << "the server does not start";
  }
  void stop() { run(programs() + "/pg_ctl -D " + data() + " -m immediate -w stop"); }

  // Stops the server and all its child processes, as if the machine froze.
  void freeze() { signal_all(SIGSTOP); }
  void resume() { signal_all(SIGCONT); }

  std::string url(const std::string& user = "weir", const std::string& database = "postgres") const {
    return "postgresql://" + user + "@/" + database + "?host=" + folder_.path();
  }
  void sql(const std::string& script) const {
    PostgresConnection other(url(), Micros{30'000'000});
    ASSERT_TRUE(other.read_address());
    other.begin();
    const Result<void> opened = other.open();
    ASSERT_TRUE(opened) << opened.error().message;
    const Result<PostgresAnswer> answer = other.run(script);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->state(), "") << script.substr(0, 100) << ": " << answer->message();
  }
  std::string data() const { return folder_.at("data"); }

 private:
  bool run(const std::string& command) const { return run(command, folder_); }
  static bool run(const std::string& command, const base::TestFolder& folder) {
    const std::string as = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
    return std::system(("cd / && LC_ALL=C " + as + command + " >>" + folder.at("output") + " 2>&1").c_str()) == 0;
  }

  // What initdb creates, which takes longer than most tests: once for all tests of a process, which copy it.
  static std::string empty_data() {
    struct Empty {
      Empty() {
        std::filesystem::permissions(folder.path(), std::filesystem::perms{0777});
        EXPECT_TRUE(run(programs() + "/initdb --no-sync --no-instructions -A trust -U weir --locale=C -E UTF8 -D " +
                            folder.at("data"),
                        folder));
      }
      ~Empty() { run("rm -rf " + folder.at("data"), folder); }
      base::TestFolder folder;
    };
    static Empty empty;
    return empty.folder.at("data");
  }

  void signal_all(int signal) const {
    pid_t server = 0;
    std::ifstream(data() + "/postmaster.pid") >> server;
    if (server <= 0) return;
    for (const auto& process : std::filesystem::directory_iterator("/proc")) {
      const std::string name = process.path().filename();
      if (name.find_first_not_of("0123456789") != name.npos) continue;
      std::ifstream about(process.path() / "stat");
      std::string line;
      std::getline(about, line);
      pid_t parent = 0;
      char state = 0;
      if (line.rfind(')') == line.npos) continue;
      std::sscanf(line.c_str() + line.rfind(')') + 1, " %c %d", &state, &parent);
      if (parent == server) kill(static_cast<pid_t>(std::stol(name)), signal);
    }
    kill(server, signal);
  }

  base::TestFolder folder_;
  const std::string settings_;
};

}  // namespace weir::plans
