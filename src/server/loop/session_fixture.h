// Drives a session as a loop does, without a socket, for tests and fuzz targets.
//
// Input may come in any pieces; the player keeps what a session has not consumed and passes it again. One thread.
// Tested through the tests of the sessions.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/loop/session.h"

namespace weir::server::loop {

// Tests of sessions are compiled twice, the second time with sessions on fibers (tests/on_fibers.h). A session on a
// fiber takes all input at once, has its own turn, and does not use the loop's buffers. store_of_tests() is for
// LimiterOptions::shared. With fibers, it is a store that makes every call wait; without them, null.
#ifdef WEIR_ON_FIBERS
inline constexpr bool kIsOnFibers = true;
inline std::shared_ptr<store::Store> store_of_tests() { return test::FarAway::get().store.store(); }
#else
inline constexpr bool kIsOnFibers = false;
inline std::shared_ptr<store::Store> store_of_tests() { return nullptr; }
#endif

class SessionPlayer {
 public:
  SessionPlayer(Session& session, Limiter& limiter) : session_(session), turn_(limiter) {}

  // Passes `bytes` to the session; answers are appended to `output`.
  Progress feed(std::string_view bytes) {
    pending_.append(bytes);
    Progress all;
    while (true) {
      const Progress step = session_.consume(pending_, turn_, output);
      all.add(step);
      all.consumed += step.consumed;
      if (step.asked) {
        turn_.decide();
        all.close = session_.settle(turn_, output) || all.close;
        turn_.clear();
      }
      pending_.erase(0, step.consumed);
      if (all.close || step.full || session_.is_holding() || (!step.asked && step.consumed == 0)) return all;
      if (!step.asked && pending_.empty()) return all;
    }
  }

  // The answers since the last call.
  std::string take() {
    std::string taken;
    taken.swap(output);
    return taken;
  }

  const std::string& pending() const { return pending_; }
  std::string output{};

 private:
  Session& session_;
  Turn turn_;
  std::string pending_;
};

}  // namespace weir::server::loop
