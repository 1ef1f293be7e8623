// An HTTP/1.1 client's conversation: requests in, answers out, in order. See session.h for how it is driven.
//
// Keep-alive, pipelining, chunked bodies, Expect: 100-continue; header and body within their bounds. Whatever is not
// HTTP, or could be read in two ways, gets a 400 that says so, and the connection ends. Tested by http_session_test.cc.
#pragma once

#include <memory>
#include <string>

#include "protocol/http1.h"
#include "server/fiber_session.h"
#include "server/http_service.h"
#include "server/session.h"

namespace weir {

// `service` outlives the session. `peer` is the client's address; of a unix socket 127.0.0.1.
std::unique_ptr<Session> make_http_session(HttpService& service, std::string peer = "127.0.0.1");

// The same on fibers. The desks are HttpDesks, and outlive it.
std::unique_ptr<Session> make_http_session(Desks& desks, std::string peer = "127.0.0.1");

}  // namespace weir
