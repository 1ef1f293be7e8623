// A session whose requests may wait for a decision, around an inner session that knows nothing of fibers.
//
//   ContextPool pool(tasks, [&] { return std::make_unique<HttpContext>(service); }, WithoutFiber::shed);
//   auto session = make_fiber_session(pool, std::make_unique<HttpSession>(home, peer));
//
// The session takes over all input, and the inner session works on it on a fiber, with a turn of its own. If that
// ends at once, everything is as without fibers. If it must wait, the session is_holding() with due() == kNever, and
// reads nothing. When the fiber has ended, the session calls its owner's on_ready(), and wake() delivers the answers.
// If the client leaves meanwhile, the inner session lives until its fiber has ended. session.h says how a session is
// driven. Tested by fiber_session_test.cc and, with all tests of the inner sessions, on_fibers_test.
#pragma once

#include <memory>

#include "server/loop/request_context.h"
#include "server/loop/session.h"

namespace weir::server::loop {

// `inner` uses pool.home(). The pool must outlive the session and its fibers.
std::unique_ptr<Session> make_fiber_session(ContextPool& pool, std::unique_ptr<Session> inner);

}  // namespace weir::server::loop
