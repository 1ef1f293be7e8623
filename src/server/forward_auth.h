// GET /auth, and whatever a proxy sends there or below it: may the request that it received pass?
//
// 200 with an empty body, or the status of a denial; header fields tell the rest. A request that a leaky bucket has put
// into its queue is answered when its turn comes: the session holds the answer back. If that is too long, or too many
// are held already, its place is given back and it is denied. Tested by forward_auth_session_test.cc.
#pragma once

#include <memory>

#include "server/http_service.h"

namespace weir {

HttpNext forward_auth_route(const HttpCall& call, HttpService& service, HttpWork& work);

// Gives back what the call was charged by these rules: its client has left while the answer was held.
void give_back_turn(const HttpCall& call, const std::shared_ptr<const Rulebook>& rules, HttpService& service);

}  // namespace weir
