// What the HTTP port offers: a request's method, path and body -> an answer. No sockets, no HTTP parsing.
//
// Every error is a problem document that says what would be right. The routes stand in one table; each group of them
// has a file. One thread for a service. Tested by http_session_test.cc.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/http_service.h"

namespace weir {

// Puts the answer into HttpService::answer, or says what it waits for.
HttpNext answer_call(const HttpCall& call, HttpService& service, HttpWork& work);

// The largest body that is read for this target.
std::size_t body_max(std::string_view target, const Bounds& bounds);

}  // namespace weir
