// The answers to requests that are shed under overload (overload.h), for each protocol.
//
// Nothing is charged, and neither rules nor counts are read. Every answer is recognizable. HTTP has a header field
// X-Weir-Overload, and answers with a reason have the reason `overload`. Replies to CL.THROTTLE, GCRA and THROTTLE
// report a limit of 0, since their five integers have no place for a reason. Each is counted. A loop's thread. Tested
// by shed_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "server/http/http_service.h"
#include "server/loop/bounds.h"
#include "server/resp/resp_call.h"

namespace weir {

inline constexpr std::string_view kOverloaded = "server overloaded; request not evaluated; retry shortly";

// Whether this call can be shed; its answer is then in HttpService::answer. If the turn refuses(), every call is shed
// except those that only read.
bool shed_http(const HttpCall& call, const Turn& turn, HttpService& service);

// The reply to a command that has kSheds and, if the turn refuses(), to any other.
void shed_resp(const Call& call, const RespCommand& command);

// Appends the framed answer of ShouldRateLimit.
void append_shed_rls(OnOverload what, std::string& out);

}  // namespace weir
