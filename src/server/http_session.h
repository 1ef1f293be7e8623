// An HTTP/1.1 client's conversation: requests in, answers out, in order. See session.h for how it is driven.
//
// Keep-alive, pipelining, chunked bodies, Expect: 100-continue; 8 KiB of header, 1 MiB of body. Whatever is not
// HTTP, or could be read in two ways, gets a 400 that says so, and the connection ends. Tested by http_session_test.cc.
#pragma once

#include <cstddef>
#include <memory>

#include "server/http_api.h"
#include "server/session.h"

namespace weir {

inline constexpr std::size_t kHttpHeaderMax = std::size_t{8} << 10;
inline constexpr std::size_t kHttpFieldsMax = 100;
inline constexpr std::size_t kHttpBodyMax = std::size_t{1} << 20;

// `service` outlives the session.
std::unique_ptr<Session> make_http_session(HttpService& service);

}  // namespace weir
