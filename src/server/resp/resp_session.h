// The server side of a Redis client's connection: RESP in, replies out, in order. session.h says how it is driven.
//
// Checks of a pipeline join the turn. Commands that do not depend on them are answered meanwhile. A command that must
// see their effect stops the reading until they are settled. Tested by resp_session_test.cc and fuzz/resp_session.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/loop/fiber_session.h"
#include "server/loop/session.h"
#include "server/resp/resp_service.h"

namespace weir::server::resp {

// `service` must outlive the session, and the session must exist until its checks are decided. `id` is the
// connection's, for CLIENT ID; `peer` is its address, for the log.
std::unique_ptr<loop::Session> make_resp_session(RespService& service, std::int64_t id, std::string peer = {});

// The same on fibers. The pool has RespContexts and must outlive the session.
std::unique_ptr<loop::Session> make_resp_session(loop::ContextPool& pool, std::int64_t id, std::string peer = {});

}  // namespace weir::server::resp
