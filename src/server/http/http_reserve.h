// The routes for permits with a later settlement or release: POST /v1/reserve, /v1/commit, /v1/cancel, /v1/acquire
// and /v1/release.
//
// Tested by http_reserve_test.cc.
#pragma once

#include "server/http/http_service.h"

namespace weir {

HttpNext reserve_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext commit_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext cancel_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext acquire_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext release_route(const HttpCall& call, HttpService& service, HttpWork& work);

}  // namespace weir
