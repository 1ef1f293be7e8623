// Runs one test as a child, and fails it if a process that it started is left when it ends: `run_test_alone
// COMMAND...`.
//
// It is the subreaper of everything below it, so a process whose parent ended becomes its own child: it cannot escape
// by a new session, environment or name. A process that is about to end gets some seconds; what is still there is named
// and killed.
//
// ctest sends SIGKILL to a test that takes too long, and a terminal interrupts it. So there are two processes: ctest
// starts one that only waits, and the other, which does all else, ends everything when the first is gone.
//
// Its exit code is that of the test. With WEIR_TEST_TIMES, it adds a line to that file: elapsed seconds, seconds of
// processor time of the test and its children, and the command. One thread.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kGrace{10};

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The children of this process that have not ended.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const std::string self = std::to_string(::getpid());
  std::istringstream list(read_all("/proc/self/task/" + self + "/children"));
  for (pid_t child; list >> child;) found.push_back(child);
  return found;
}

std::string command_of(pid_t process) {
  std::string text = read_all("/proc/" + std::to_string(process) + "/cmdline");
  for (char& c : text) {
    if (c == '\0') c = ' ';
  }
  return text;
}

// Reaps what has ended. False if there is no child any more.
bool reap() {
  for (;;) {
    const pid_t ended = ::waitpid(-1, nullptr, WNOHANG);
    if (ended == 0) return true;
    if (ended < 0 && errno != EINTR) return false;
  }
}

// How many processes did not end by themselves within `grace`. They are named on stderr and killed, and what they
// started with them.
int end_leftovers(std::chrono::seconds grace) {
  const Clock::time_point end = Clock::now() + grace;
  while (reap()) {
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  int left = 0;
  while (reap()) {
    for (const pid_t child : children()) {
      std::fprintf(stderr, "FAIL  the test left a process behind: %d %s\n", child, command_of(child).c_str());
      ::kill(child, SIGKILL);
      ++left;
      ::waitpid(child, nullptr, 0);
    }
  }
  return left;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void write_times(Clock::time_point began, char** command) {
  const char* file = std::getenv("WEIR_TEST_TIMES");
  if (file == nullptr) return;
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  char line[512];
  const int size =
      std::snprintf(line, sizeof line, "%.3f %.3f", std::chrono::duration<double>(Clock::now() - began).count(),
                    seconds(used.ru_utime) + seconds(used.ru_stime));
  std::string text(line, static_cast<std::size_t>(size));
  for (; *command != nullptr; ++command) text += std::string(" ") + *command;
  text += '\n';
  const int out = ::open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (out < 0 || ::write(out, text.data(), text.size()) < 0) std::perror(file);
  if (out >= 0) ::close(out);
}

// The signals that ask the runner to stop, and the one for an ended child. They stay blocked: it waits for them.
sigset_t awaited() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&set, signal);
  return set;
}

// In the child of a fork: is sent `signal` when its parent ends.
void end_with_parent(pid_t parent, int signal) {
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (::getppid() != parent) ::_exit(2);
}

// The status of the test, as waitpid() gives it; -1 if the runner was asked to stop before, or cannot wait.
int await(pid_t test) {
  const sigset_t set = awaited();
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    if (ended == test) return status;
    if (ended > 0) continue;
    if (ended < 0 && errno != EINTR) return std::perror("waitpid"), -1;
    const int signal = ::sigwaitinfo(&set, nullptr);
    if (signal > 0 && signal != SIGCHLD) return -1;
  }
}

int run(char** command) {
  const Clock::time_point began = Clock::now();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t set = awaited();
  const pid_t runner = ::getpid();
  const pid_t test = ::fork();
  if (test < 0) return std::perror("fork"), 2;
  if (test == 0) {
    end_with_parent(runner, SIGKILL);
    ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
    ::execvp(command[0], command);
    std::perror(command[0]);
    ::_exit(127);
  }
  const int status = await(test);
  if (status < 0) return end_leftovers(std::chrono::seconds{0}), 2;
  const int left = end_leftovers(kGrace);
  write_times(began, command);
  if (WIFSIGNALED(status)) {
    std::fprintf(stderr, "FAIL  the test was ended by signal %d (%s)\n", WTERMSIG(status),
                 ::strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
  }
  const int code = WEXITSTATUS(status);
  return code == 0 && left > 0 ? 1 : code;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "usage: run_test_alone COMMAND...\n"), 2;
  const pid_t first = ::getpid();
  const sigset_t set = awaited();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &set, &before);
  const pid_t second = ::fork();
  if (second < 0) return std::perror("fork"), 2;
  if (second == 0) {
    end_with_parent(first, SIGTERM);
    return run(words + 1);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (::waitpid(second, &status, 0) < 0) {
    if (errno != EINTR) return std::perror("waitpid"), 2;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
