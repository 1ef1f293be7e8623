// The commands that a Redis client may send: a table of names, arities and functions.
//
// Enough for every common client to connect (HELLO, CLIENT, INFO, COMMAND …) and for CL.THROTTLE; texts of errors
// are those of Redis. No sockets. The state of a client belongs to its connection's thread; the Limiter is
// shared. Tested by resp_session_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "resp/writer.h"
#include "weir/limiter.h"

namespace weir {

struct RespClient {
  std::int64_t id = 0;
  resp::Protocol protocol = resp::Protocol::resp2;
  std::string name;
};

enum class AfterCommand : std::uint8_t { go_on, close, drop };  // drop: nothing more is written

// `args` are not empty: the first one is the command's name.
AfterCommand run_command(std::span<const std::string_view> args, std::string_view server_version, Limiter& limiter,
                         RespClient& client, resp::Writer& out);

}  // namespace weir
