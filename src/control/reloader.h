// The thread that maintains the rules in effect: it reloads the config file and Envoy's files on request or when one
// of them has changed, and ends changes whose time is over.
//
// Reading and validating a large file takes a while, so only this thread does it. Any thread. Tested by
// tests/server/policy.sh and reload.sh there.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>

#include "control/control.h"
#include "control/file_watch.h"

namespace weir::control {

enum class Watching : std::uint8_t { on, off };

class Reloader {
 public:
  // `control` must outlive it, and must have started.
  Reloader(Control& control, Watching watching);
  ~Reloader();
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  // The thread calls it after each requested reload, successful or not. Set it before the first reload.
  void when_done(std::function<void()> call) { done_ = std::move(call); }
  // Requests a reload soon, whether the file has changed or not.
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

}  // namespace weir::control
