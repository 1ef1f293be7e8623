// POST /json: Envoy's rate limit service in protobuf's JSON, as its reference implementation offers it.
//
// 200 if it passes, 429 if not, 400 for whatever is wrong. Tested by http_rls_test.cc.
#pragma once

#include "server/http_service.h"

namespace weir {

HttpNext rls_route(const HttpCall& call, HttpService& service, HttpWork& work);

}  // namespace weir
