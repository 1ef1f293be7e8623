// A Redis client's conversation: RESP in, replies out, in order. See session.h for how it is driven.
//
// Tested by resp_session_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "server/session.h"
#include "weir/limiter.h"

namespace weir {

// `limiter` and `server_version` outlive the session.
std::unique_ptr<Session> make_resp_session(Limiter& limiter, std::string_view server_version, std::int64_t id);

}  // namespace weir
