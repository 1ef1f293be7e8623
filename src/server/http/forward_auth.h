// GET /auth, and every request that a proxy sends to /auth or below: may the request that the proxy received pass?
//
// Answers 200 with an empty body, or the status of a denial; header fields carry the details. If a leaky bucket
// queues the request, the session delays the answer until the request's time in the queue. If that is too long, or
// too many answers are delayed already, the request leaves the queue and is denied. Tested by
// forward_auth_session_test.cc.
#pragma once

#include <memory>

#include "server/http/http_service.h"

namespace weir {

HttpNext forward_auth_route(const HttpCall& call, HttpService& service, HttpWork& work);

// Refunds what these rules charged for the call: its client has left while the answer was delayed.
void give_back_turn(const HttpCall& call, const std::shared_ptr<const Rulebook>& rules, HttpService& service);

}  // namespace weir
