// POST /json: the rate limit service over plain HTTP, as envoyproxy/ratelimit answers it.
//
// 200 when it passes, 429 when it does not, each with a RateLimitResponse in protobuf's JSON; 400 with a text when the
// request cannot be read or charged. Tested by http_rls_test.cc.
#pragma once

#include "server/http_service.h"

namespace weir {

HttpNext rls_route(const HttpCall& call, HttpService& service, HttpWork& work);

}  // namespace weir
