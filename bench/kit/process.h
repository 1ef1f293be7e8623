// A server that a benchmark starts: it is pinned to its cores, and it ends with the benchmark, however that ends.
//
// If the benchmark dies, the kernel kills the server; otherwise the destructor does. One thread, the first of the
// process, because the kernel watches the thread that forked.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace weir::bench {

// Something that a part needs is missing, so the part is not measured.
struct Missing {
  std::string why;
};

class Process {
 public:
  enum class Cores { first, last, all };

  // Starts the command and waits until it prints the line `ready`. Throws Missing if it does not.
  Process(std::vector<std::string> command, Cores cores);
  // Starts a command that prints nothing, and waits until something listens on the port. Throws Missing if nothing
  // does.
  Process(std::vector<std::string> command, Cores cores, int port);
  ~Process() { end(); }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, 0)), output_(std::move(other.output_)) {}
  Process& operator=(Process&&) = delete;

  pid_t pid() const { return pid_; }
  // The address in the line that begins with this word, without its scheme; throws Missing.
  std::string address(const std::string& word) const;

 private:
  void start(std::vector<std::string> command, Cores cores, int output_fd);
  bool is_alive() const;
  void end();

  pid_t pid_ = 0;
  std::string output_;
};

// Searches PATH for a program and returns its path; throws Missing.
std::string find_program(const std::string& name);

// A Redis server that stores nothing on disk; throws Missing.
Process start_redis_server(int port, Process::Cores cores);

// A TCP port on which no process listens now.
int free_port();

// Runs a shell command and returns its output; throws Missing if it fails.
std::string output_of(const std::string& command);

// A temporary folder; the destructor removes it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weir::bench
