// What is answered when there is no time for a decision, in the words of each protocol: see overload.h.
//
// Nothing is charged, and neither rules nor counts are looked at. Every answer says that it is one of these: a header
// field X-Weir-Overload where there are header fields, `overload` as the reason where there is a reason, a limit of 0
// in the replies of other servers' commands, which have room for nothing else. Each is counted. A loop's thread. Tested
// by shed_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "server/bounds.h"
#include "server/http_service.h"
#include "server/resp_call.h"

namespace weir {

inline constexpr std::string_view kOverloaded =
    "there is more to answer than there is time for, so this was not looked at; try again shortly";

// Whether this is a call that can be answered so; the answer is in HttpService::answer then. A turn that refuses()
// has an answer to all but those who only look.
bool shed_http(const HttpCall& call, const Turn& turn, HttpService& service);

// The reply to a command that has kSheds; to another one, if the turn refuses().
void shed_resp(const Call& call, const RespCommand& command);

// Appends the answer of ShouldRateLimit, framed.
void append_shed_rls(OnOverload what, std::string& out);

}  // namespace weir
