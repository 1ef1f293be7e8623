// An HTTP/1.1 client's conversation: requests in, answers out, in order. See session.h for how it is driven.
//
// Keep-alive, pipelining, chunked bodies, Expect: 100-continue; 8 KiB of header, 1 MiB of body. Whatever is not
// HTTP gets a 400 that says so, and the connection ends. Tested by http_session_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "server/http_api.h"
#include "server/session.h"

namespace weir {

inline constexpr std::size_t kHttpHeaderMax = std::size_t{8} << 10;
inline constexpr std::size_t kHttpBodyMax = std::size_t{1} << 20;

// `service` outlives the session.
std::unique_ptr<Session> make_http_session(HttpService& service);

// What a client is told that cannot be served because there are too many.
inline constexpr std::string_view kHttpRefusal =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 41\r\nRetry-After: 1\r\n"
    "Connection: close\r\n\r\nToo many connections; try again shortly.\n";

}  // namespace weir
