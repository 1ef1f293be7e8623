// What a command of the RESP port is given, and the few replies that several of them share.
//
// Commands are plain functions in two files: those about the connection (resp_client_commands.cc) and the rest
// (resp_commands.cc, with the table of all). They belong to a connection's thread. Tested by resp_session_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "resp/writer.h"
#include "server/resp_commands.h"
#include "weir/limiter.h"

namespace weir {

// The Redis whose replies these are. Clients choose features by it.
inline constexpr std::string_view kRedisVersion = "7.0.15";
inline constexpr std::size_t kNameMax = 128;  // of what an error repeats of an unknown name

struct Call {
  std::span<const std::string_view> args;  // the command's name first
  std::string_view server_version;
  Limiter& limiter;
  RespClient& client;
  resp::Writer& out;
};

void reply_ok(const Call& call);
void reply_wrong_arity(resp::Writer& out, std::string_view name);
// Redis sends whoever guesses to HELP, so each command with subcommands has it.
void reply_unknown_subcommand(const Call& call);
void reply_help(const Call& call, std::span<const std::string_view> lines);

AfterCommand run_auth(const Call& call);
AfterCommand run_client(const Call& call);
AfterCommand run_hello(const Call& call);
AfterCommand run_quit(const Call& call);
AfterCommand run_reset(const Call& call);
AfterCommand run_select(const Call& call);

}  // namespace weir
