// Starts and ends servers. See process.h.
#include "kit/process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "kit/machine.h"

namespace weir::bench {
namespace {

constexpr int kTimeoutMs = 20'000;
constexpr int kNapMs = 10;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

bool is_listened_on(int port) {
  const sockaddr_in address = loopback(port);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_there = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return is_there;
}

// Reads until a line is `ready`, until the end, or until nothing arrives for kTimeoutMs.
std::string read_until_ready(int fd) {
  std::string text;
  pollfd wanted{.fd = fd, .events = POLLIN};
  char bytes[4'096];
  while (("\n" + text).find("\nready\n") == std::string::npos && poll(&wanted, 1, kTimeoutMs) == 1) {
    const ssize_t size = read(fd, bytes, sizeof bytes);
    if (size <= 0) break;
    text.append(bytes, static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace

Process::Process(std::vector<std::string> command, Cores cores) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Missing{"cannot create a pipe"};
  const std::string name = command.front();
  start(std::move(command), cores, ends[1]);
  close(ends[1]);
  output_ = read_until_ready(ends[0]);
  close(ends[0]);
  if (("\n" + output_).find("\nready\n") != std::string::npos) return;
  end();
  throw Missing{name + " did not start" + (output_.empty() ? "" : ": " + output_)};
}

Process::Process(std::vector<std::string> command, Cores cores, int port) {
  const std::string name = command.front();
  start(std::move(command), cores, -1);
  for (int waited = 0; waited < kTimeoutMs && is_alive(); waited += kNapMs) {
    if (is_listened_on(port)) return;
    usleep(kNapMs * 1'000);
  }
  end();
  throw Missing{name + " does not listen on port " + std::to_string(port)};
}

void Process::start(std::vector<std::string> command, Cores cores, int output_fd) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t parent = getpid();
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl()
  const int all = bench::cores();
  pin_to_cores(cores == Cores::last ? all - 1 : 0, cores == Cores::first ? 1 : all);
  const int nowhere = open("/dev/null", O_RDWR);
  dup2(nowhere, STDIN_FILENO);
  dup2(output_fd < 0 ? nowhere : output_fd, STDOUT_FILENO);
  execv(words.front(), words.data());
  _exit(127);
}

void Process::end() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

bool Process::is_alive() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

std::string Process::address(const std::string& word) const {
  std::istringstream lines(output_);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string first, url;
    if (fields >> first >> url && first == word) return url.substr(url.find("://") + 3);
  }
  throw Missing{"the server printed no address for " + word};
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + name;
    if (access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file)) return file;
  }
  throw Missing{name + " is not installed"};
}

Process start_redis_server(int port, Process::Cores cores) {
  return Process({find_program("redis-server"), "--port", std::to_string(port), "--bind", "127.0.0.1", "--save", "",
                  "--appendonly", "no", "--loglevel", "warning"},
                 cores, port);
}

int free_port() {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool is_bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  if (!is_bound) throw Missing{"found no free port"};
  return ntohs(address.sin_port);
}

std::string output_of(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw Missing{command + " did not start"};
  std::string text;
  char bytes[4'096];
  while (const std::size_t size = std::fread(bytes, 1, sizeof bytes, pipe)) text.append(bytes, size);
  if (pclose(pipe) != 0) throw Missing{command + " failed: " + text};
  return text;
}

Folder::Folder() : path_((std::filesystem::temp_directory_path() / "weir-bench-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw Missing{"cannot create the folder " + path_};
}

Folder::~Folder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace weir::bench
