// POST /json: the rate limit service over plain HTTP, with the answers of envoyproxy/ratelimit.
//
// Answers 200 if the request passes and 429 if not, each with a RateLimitResponse in protobuf's JSON. A request that
// cannot be parsed or charged gets 400 with a text. Tested by http_rls_test.cc.
#pragma once

#include "server/http/http_service.h"

namespace weir {

HttpNext rls_route(const HttpCall& call, HttpService& service, HttpWork& work);

}  // namespace weir
