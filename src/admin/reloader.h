// The thread that looks after what is in force: it reads the config file, and Envoy's files, again when it is asked to
// or when one of them has become another, and ends what is to end by itself.
//
// The reading and checking of a large file takes a while, so nobody else does it. Any thread. Tested by
// tests/server/policy.sh and reload.sh there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "admin/control.h"
#include "admin/file_watch.h"

namespace weir {

enum class Watching : std::uint8_t { on, off };

class Reloader {
 public:
  // Of `control`, which outlives it, and has started.
  Reloader(Control& control, Watching watching);
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  // Called by the thread after each reload that was asked for, good or bad. Before the first.
  void when_done(std::function<void()> call) { done_ = std::move(call); }
  // Soon, whether the file has changed or not.
  void reload();

 private:
  void work(const std::stop_token& stop);

  Control& control_;
  const bool watches_;
  FileWatch watch_;
  std::atomic<bool> is_asked_{false};
  std::function<void()> done_{};
  std::jthread thread_;
};

}  // namespace weir
