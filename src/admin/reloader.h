// Puts a config file in force, again whenever asked, while requests are answered.
//
// The reading and checking of a large file takes a while, so it is done by a thread of its own; what it finds is told
// on stderr. A file that is bad or a change that is too large leaves all as it is. Any thread. Tested by
// tests/server/policy.sh.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "weir/gate.h"
#include "weir/result.h"

namespace weir {

class Reloader {
 public:
  Reloader(Gate& gate, std::string file, Force force) : gate_(gate), file_(std::move(file)), force_(force) {}
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  // Here and now: for the start, where an error ends the program.
  Result<void> load();
  // Called by the thread after each reload, good or bad. Before the first.
  void when_done(std::function<void()> call) { done_ = std::move(call); }
  // By the thread; asked while it is at work, it begins again when it is done.
  void reload();

 private:
  void work();

  Gate& gate_;
  const std::string file_;
  const Force force_;
  std::function<void()> done_{};
  std::atomic<int> asked_{0};
  std::jthread thread_;
};

}  // namespace weir
