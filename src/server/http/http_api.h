// The HTTP API: a request's method, path and body -> an answer. No sockets, no HTTP parsing.
//
// Every error is a problem document that says how to fix the request. All routes are in one table; each group of
// routes has a file. One thread per service. Tested by http_session_test.cc.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/http/http_service.h"

namespace weir {

// Puts the answer into HttpService::answer, or returns what it waits for.
HttpNext answer_call(const HttpCall& call, HttpService& service, HttpWork& work);

// The largest body that is accepted for this target.
std::size_t body_max(std::string_view target, const Bounds& bounds);

}  // namespace weir
