// DELETE /v1/keys: resets the counts of a rule and attributes, or of a key that checks send with their own limits.
//
//   DELETE /v1/keys/login?ip=192.0.2.1&header.x-org=acme
//   DELETE /v1/keys?key=user:42
//
// Tested by http_keys_test.cc.
#pragma once

#include "server/http/http_service.h"

namespace weir {

HttpNext reset_key_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext reset_rule_route(const HttpCall& call, HttpService& service, HttpWork& work);

}  // namespace weir
