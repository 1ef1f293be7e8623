// The server side of an HTTP/1.1 connection: requests in, answers out, in order. session.h says how it is driven.
//
// It supports keep-alive, pipelining, chunked bodies and Expect: 100-continue, with header and body within their
// bounds. Input that is not HTTP, or that can be read in two ways, gets a 400 with the reason, and the connection
// ends. Tested by http_session_test.cc.
#pragma once

#include <memory>
#include <string>

#include "server/http/http_service.h"
#include "server/loop/fiber_session.h"
#include "server/loop/session.h"

namespace weir::server::http {

// `service` must outlive the session. `peer` is the client's address; on a unix socket 127.0.0.1.
std::unique_ptr<loop::Session> make_http_session(HttpService& service, std::string peer = "127.0.0.1");

// The same on fibers. The pool has HttpContexts and must outlive the session.
std::unique_ptr<loop::Session> make_http_session(loop::ContextPool& pool, std::string peer = "127.0.0.1");

}  // namespace weir::server::http
