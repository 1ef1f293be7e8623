// A Redis client's conversation: RESP in, replies out, in order. See session.h for how it is driven.
//
// Checks of a pipeline join the turn, and what needs no order among them is answered on the way; a command that must
// see what they did stops the reading until they are settled. Tested by resp_session_test.cc and fuzz/resp_session.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/fiber_session.h"
#include "server/resp_service.h"
#include "server/session.h"

namespace weir {

// `service` outlives the session, which stays until what it asked is decided; `id` is the connection's, for CLIENT ID,
// `peer` its address, for the log.
std::unique_ptr<Session> make_resp_session(RespService& service, std::int64_t id, std::string peer = {});

// The same on fibers. The desks are RespDesks, and outlive it.
std::unique_ptr<Session> make_resp_session(Desks& desks, std::int64_t id, std::string peer = {});

}  // namespace weir
