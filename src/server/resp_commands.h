// The commands that a Redis client may send: one table of names, arities and functions, and the way into it.
//
// Enough for every common client to connect (HELLO, CLIENT, INFO, COMMAND …) and for all that limits; texts of errors
// are those of Redis. No sockets. The state of a client belongs to its connection's thread, what the service holds to
// its loop's, which is the same. Tested by resp_session_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "resp/writer.h"
#include "server/resp_service.h"
#include "server/turn.h"

namespace weir {

struct RespClient {
  std::int64_t id = 0;
  resp::Protocol protocol = resp::Protocol::resp2;
  bool is_known = true;  // has shown the password, or there is none
  std::string name{};
  std::string peer{};  // its address, for the log
};

struct Call {
  std::span<const std::string_view> args;  // not empty: the command's name first
  bool is_inline = false;                  // the args do not stand in the input, one behind the other
  bool is_waiting = false;                 // this client's earlier checks are in the turn, undecided
  RespService& service;
  Turn& turn;
  RespClient& client;
  resp::Writer& out;
};

enum class AfterCommand : std::uint8_t {
  go_on,
  asked,  // a check joined the turn
  wait,   // nothing was done: call again when the turn is settled
  close,  // once the output is written
  hold,   // the reply, for kWrongSecretDelay
};

AfterCommand run_command(const Call& call);

}  // namespace weir
