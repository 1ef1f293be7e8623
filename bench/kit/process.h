// A server that a bench has started: held to its cores, and gone when the bench is, however that ends.
//
// The kernel kills it when we die, the destructor when we are done. Its folder for files goes with the bench, too. One
// thread, the first of the process: the kernel watches the thread that forked.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::bench {

// What could not be had, and so what is not measured.
struct Missing {
  std::string why;
};

class Process {
 public:
  enum class Cores { first, last, all };

  // What it prints is read until a line says `ready`. Throws Missing if that does not come.
  Process(std::vector<std::string> command, Cores cores);
  // It prints nothing: it is up as soon as somebody listens on the port.
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

// The path of a program, by the PATH; throws Missing.
std::string find_program(const std::string& name);

// A port that nobody listens on just now.
int free_port();

// What a command prints; throws Missing if it fails.
std::string output_of(const std::string& command);

// A folder for files, removed at the end.
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
