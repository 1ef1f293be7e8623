// Checks every second whether the certificate files have changed, so that a renewal takes effect by itself.
//
// Runs a thread of its own from construction to destruction. Tested by tests/server/tls.sh.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "server/loop/tls.h"

namespace weir {

class CertificateWatch {
 public:
  // `certificates` must outlive it.
  explicit CertificateWatch(TlsCertificates& certificates)
      : thread_([&certificates](const std::stop_token& stop) { look(certificates, stop); }) {}

 private:
  static void look(TlsCertificates& certificates, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any nothing;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      nothing.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
      if (!stop.stop_requested()) certificates.reload_if_changed();
    }
  }

  std::jthread thread_;
};

}  // namespace weir
