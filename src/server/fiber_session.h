// A session whose requests may wait, around one that knows nothing of it.
//
//   Desks desks(errands, [&] { return make_http_desk(service); }, WithoutFiber::shed);
//   auto session = make_fiber_session(desks, make_http_session(home_service, peer));
//
// What arrives is taken over as a whole, and the inner session works on it on a fiber, with a turn of its own. If that
// comes to its end at once, all is as without fibers. If it must wait, the session holds (is_holding(), due at no time)
// and nothing is read; when the fiber has ended the session's owner is told, and wake() brings the answers. A client
// may leave meanwhile: then the inner session lives until its fiber has come to an end, and ends there. See session.h
// for how it is driven. Tested by fiber_session_test.cc and, by all that the sessions' own tests ask, on_fibers_test.
#pragma once

#include <memory>

#include "server/desk.h"
#include "server/session.h"

namespace weir {

// `inner` sits at desks.home(). The desks outlive the session, and their fibers.
std::unique_ptr<Session> make_fiber_session(Desks& desks, std::unique_ptr<Session> inner);

}  // namespace weir
