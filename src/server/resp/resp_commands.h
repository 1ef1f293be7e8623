// The RESP commands: one table of names, arities and functions, and the lookup in it.
//
// The table has all rate-limiting commands, and enough for every common client to connect (HELLO, CLIENT, INFO,
// COMMAND …). Error texts are those of Redis. No sockets. A client's state belongs to its connection's thread, the
// service to its loop's, which is the same. Tested by resp_session_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "resp/writer.h"
#include "server/loop/turn.h"
#include "server/resp/resp_service.h"

namespace weir {

struct RespClient {
  std::int64_t id = 0;
  resp::Protocol protocol = resp::Protocol::resp2;
  bool is_known = true;  // authenticated, or no password is set
  std::string name{};
  std::string peer{};  // its address, for the log
};

struct Call {
  std::span<const std::string_view> args;  // not empty: the command's name is first
  bool is_inline = false;                  // an inline command: the args are not consecutive in the input
  bool is_waiting = false;                 // earlier checks of this client are undecided in the turn
  RespService& service;
  Turn& turn;
  RespClient& client;
  resp::Writer& out;
};

enum class AfterCommand : std::uint8_t {
  go_on,
  asked,  // a check has joined the turn
  wait,   // nothing was done: call again when the turn is settled
  close,  // after the output is written
  hold,   // delay the reply for kWrongSecretDelay
};

AfterCommand run_command(const Call& call);

}  // namespace weir
