// See state_watch.h. The fault is synchronous and comes from an access to the table. At that point the thread holds
// no lock that the log or the heap needs, so the handler can use both.
#include "serve/state_watch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>

#include "cli/command.h"
#include "log/log.h"

namespace weir::serve {
namespace {

struct Watched {
  std::string path;
  ino_t file = 0;
  off_t bytes = 0;
};
Watched watched;
std::atomic<bool> is_ending{false};

// Whether the address is in a mapping of the file.
bool is_in_state(const void* address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return false;
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool found = false;
  char line[512];
  while (!found && std::fgets(line, sizeof line, maps) != nullptr) {
    std::uintptr_t begin = 0, end = 0;
    std::uint64_t file = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %" SCNu64, &begin, &end, &file) != 3) continue;
    found = begin <= wanted && wanted < end && file == watched.file;
  }
  std::fclose(maps);
  return found;
}

[[noreturn]] void end_server() {
  struct stat info {};
  const bool is_there = stat(watched.path.c_str(), &info) == 0 && info.st_ino == watched.file;
  if (is_there && info.st_size < watched.bytes) {
    log::log(log::LogLevel::error, "another program truncated the state file; the server stops",
             {{"file", watched.path},
              {"bytes", std::to_string(info.st_size) + " of " + std::to_string(watched.bytes)},
              {"fix", "restore the file or remove it, then start weir again"}});
  } else {
    log::log(log::LogLevel::error, "cannot read or write the state file; the server stops",
             {{"file", watched.path},
              {"fix", "check the disk (dmesg); restore the file or remove it, then start weir again"}});
  }
  log::end_log();
  _exit(cli::kCouldNot);
}

void on_fault(int, siginfo_t* info, void*) {
  if (!is_in_state(info->si_addr)) {
    std::signal(SIGBUS, SIG_DFL);
    std::raise(SIGBUS);  // delivered when this function returns; the system then ends the process
    return;
  }
  if (!is_ending.exchange(true)) end_server();
  for (;;) pause();  // another thread is already ending the server
}

}  // namespace

StateWatch::StateWatch(const std::string& path) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0) return;
  watched = {path, info.st_ino, info.st_size};
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
}

StateWatch::~StateWatch() {
  if (!watched.path.empty()) std::signal(SIGBUS, SIG_DFL);
}

}  // namespace weir::serve
