// A session whose requests may wait for a decision, around an inner session that knows nothing of fibers.
//
//   Desks desks(errands, [&] { return make_http_desk(service); }, WithoutFiber::shed);
//   auto session = make_fiber_session(desks, make_http_session(home_service, peer));
//
// The session takes over all input, and the inner session works on it on a fiber, with a turn of its own. If that
// ends at once, everything is as without fibers. If it must wait, the session is_holding() with due() == kNever, and
// reads nothing. When the fiber has ended, the session calls its owner's on_ready(), and wake() delivers the answers.
// If the client leaves meanwhile, the inner session lives until its fiber has ended. session.h says how a session is
// driven. Tested by fiber_session_test.cc and, with all tests of the inner sessions, on_fibers_test.
#pragma once

#include <memory>

#include "server/loop/desk.h"
#include "server/loop/session.h"

namespace weir {

// `inner` uses desks.home(). The desks must outlive the session and its fibers.
std::unique_ptr<Session> make_fiber_session(Desks& desks, std::unique_ptr<Session> inner);

}  // namespace weir
