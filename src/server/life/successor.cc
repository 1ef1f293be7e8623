// Starts the successor: fork, exec, and its descriptors and environment. See successor.h.
#include "server/life/successor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

namespace weir::server::life {
namespace {

constexpr std::size_t kPidDigits = 10;

// Finds the program like a shell. The search is repeated and symbolic links are followed now, so that a new version
// is started.
std::string find_program(const Succession& how) {
  const std::string& name = how.command.front();
  if (name.find('/') != name.npos) return name;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : parts_of(path == nullptr ? "" : path)) {
    std::string candidate = folder + '/' + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return how.program;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A variable for the child's process id, which only the child can fill in.
std::string pid_variable(std::string_view name) { return std::string(name) + '=' + std::string(kPidDigits, '0'); }

// Everything the child needs, prepared before the fork.
struct Plan {
  std::string program;
  std::vector<std::string> arguments, variables;
  std::vector<char*> argv, envp;
  std::vector<int> descriptors;  // they become 3, 4, ...; the last is the pipe
  std::vector<char*> pids;       // where the child writes its process id
};

void lay_out(Plan& plan, const Succession& how, const std::vector<NamedSocket>& sockets,
             const std::vector<std::string>& files, int pipe) {
  plan.program = find_program(how);
  plan.arguments = how.command;
  bool has_watchdog = false;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool is_pid = std::string_view(*variable).starts_with("WATCHDOG_PID=");
    has_watchdog = has_watchdog || is_pid;
    if (!is_pid) plan.variables.emplace_back(*variable);
  }
  std::string names, succeeds = "WEIR_SUCCEEDS=" + std::to_string(kFirstSocket + static_cast<int>(sockets.size()));
  for (const NamedSocket& socket : sockets) {
    names += (names.empty() ? "" : ":") + socket.listener;
    plan.descriptors.push_back(socket.socket.get());
  }
  plan.descriptors.push_back(pipe);
  for (const std::string& file : files) succeeds += ':' + file;
  plan.variables.push_back("LISTEN_FDS=" + std::to_string(sockets.size()));
  plan.variables.push_back("LISTEN_FDNAMES=" + names);
  plan.variables.push_back(succeeds);
  const std::size_t first_pid = plan.variables.size();
  plan.variables.push_back(pid_variable("LISTEN_PID"));
  if (has_watchdog) plan.variables.push_back(pid_variable("WATCHDOG_PID"));
  for (std::size_t i = first_pid; i < plan.variables.size(); ++i) {
    plan.pids.push_back(plan.variables[i].data() + plan.variables[i].size() - kPidDigits);
  }
  plan.argv = pointers_to(plan.arguments);
  plan.envp = pointers_to(plan.variables);
}

// Runs in the child of a process with threads: it must not allocate or lock, only make system calls.
[[noreturn]] void become(const Plan& plan, int pipe) {
  pid_t pid = getpid();
  for (std::size_t digit = kPidDigits; digit-- > 0; pid /= 10) {
    for (char* place : plan.pids) place[digit] = static_cast<char>('0' + pid % 10);
  }
  const int end = kFirstSocket + static_cast<int>(plan.descriptors.size());
  // First copy them above the target range: descriptor 3 may be one of those to move.
  std::array<int, 4'097> copies{};
  bool is_moved = plan.descriptors.size() <= copies.size();
  for (std::size_t i = 0; is_moved && i < plan.descriptors.size(); ++i) {
    copies[i] = fcntl(plan.descriptors[i], F_DUPFD_CLOEXEC, end);
    is_moved = copies[i] >= 0;
  }
  const int report = is_moved ? copies[plan.descriptors.size() - 1] : pipe;
  for (std::size_t i = 0; is_moved && i < plan.descriptors.size(); ++i) {
    is_moved = dup2(copies[i], kFirstSocket + static_cast<int>(i)) >= 0;
  }
  if (is_moved) {
    close_range(static_cast<unsigned>(end), UINT_MAX, CLOSE_RANGE_CLOEXEC);
    execve(plan.program.c_str(), plan.argv.data(), plan.envp.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "the new process was killed by signal " + std::to_string(WTERMSIG(status));
  return "the new process exited with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Result<Successor> Successor::start(const Succession& how, const std::vector<NamedSocket>& sockets,
                                   const std::vector<std::string>& files) {
  const auto cannot = [](const std::string& what) {
    return fail(ErrorCode::unavailable, what + ": " + std::strerror(errno));
  };
  std::array<int, 2> ends{};
  if (how.command.empty() || pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return cannot("cannot create a pipe");
  base::Descriptor ours(ends[0]), theirs(ends[1]);
  Plan plan;
  lay_out(plan, how, sockets, files, theirs.get());
  // The parent's handlers must not run in the child, where they would write into the parent's pipes.
  sigset_t all{}, before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction action {};
      if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
      action.sa_handler = SIG_DFL;
      sigaction(signal, &action, nullptr);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    become(plan, theirs.get());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return cannot("cannot create a process");
  return Successor(pid, std::move(ours));
}

Successor::Report Successor::read_report() {
  std::array<char, sizeof(int)> bytes{};
  const ssize_t size = read(pipe_.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Report::nothing;
  if (size == 1) return Report::ready;
  if (size == static_cast<ssize_t>(bytes.size())) {
    int error = 0;
    std::memcpy(&error, bytes.data(), bytes.size());
    why_ = std::string("cannot start the program: ") + std::strerror(error);
  }
  end();
  return Report::failed;
}

void Successor::end() {
  kill(pid_, SIGKILL);  // a process that is already ending keeps its exit code
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (why_.empty()) why_ = how_it_ended(status);
}

Succession own_command() {
  Succession own;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  text += '\0';  // each argument ends with a NUL; this one is for a text without any
  for (std::size_t at = 0; at + 1 < text.size(); at = text.find('\0', at) + 1) own.command.emplace_back(&text[at]);
  std::array<char, PATH_MAX> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (size > 0) own.program.assign(path.data(), static_cast<std::size_t>(size));
  return own;
}

}  // namespace weir::server::life
