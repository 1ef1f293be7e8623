// A RESP command's function, its row in the table, and the replies that several commands share.
//
// Commands are plain functions in three files: rate limiting (resp_limit_commands.cc), the connection
// (resp_client_commands.cc) and the server (resp_server_commands.cc). They belong to a loop's thread. Tested by
// resp_session_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "server/resp/resp_commands.h"

namespace weir {

// The Redis version whose replies these are. Clients choose features by it.
inline constexpr std::string_view kRedisVersion = "7.0.15";
inline constexpr std::size_t kNameMax = 128;  // how much of an unknown name an error repeats
inline constexpr std::size_t kAnyNumber = std::numeric_limits<std::size_t>::max();

using RespFunction = AfterCommand (*)(const Call&);

// Traits of a command.
enum : std::uint8_t {
  kWaits = 1,    // reads or changes what earlier checks do, so it runs after them
  kForAll = 2,   // allowed before authentication
  kHasKey = 4,   // its first argument is a key
  kHasKeys = 8,  // all of its arguments are keys
  kSheds = 16,   // answered without a decision under overload
  kAsks = 32,    // asks the limiter something else, and is refused if it cannot wait for the answer
};

struct RespCommand {
  std::string_view name;  // lower case
  std::size_t args_min;   // not counting the name
  std::size_t args_max;
  RespFunction run;
  std::uint8_t traits;
};

std::span<const RespCommand> all_commands();
// Case-insensitive; null if there is no such command.
const RespCommand* find_command(std::string_view name);

std::string upper(std::string_view text);
void reply_ok(const Call& call);
void reply_wrong_arity(resp::Writer& out, std::string_view name);
// Redis points to HELP in this error, so each command with subcommands has HELP.
void reply_unknown_subcommand(const Call& call);
void reply_help(const Call& call, std::span<const std::string_view> lines);

// resp_limit_commands.cc
AfterCommand run_cell_throttle(const Call& call);
AfterCommand run_crab_throttle(const Call& call);
AfterCommand run_gcra(const Call& call);
AfterCommand run_weir_check(const Call& call);
AfterCommand run_weir_limit(const Call& call);
AfterCommand run_weir_reset(const Call& call);
AfterCommand run_del(const Call& call);

// resp_client_commands.cc
AfterCommand run_auth(const Call& call);
AfterCommand run_client(const Call& call);
AfterCommand run_hello(const Call& call);
AfterCommand run_quit(const Call& call);
AfterCommand run_reset(const Call& call);
AfterCommand run_select(const Call& call);

// resp_server_commands.cc
AfterCommand run_cluster(const Call& call);
AfterCommand run_command_command(const Call& call);
AfterCommand run_config(const Call& call);
AfterCommand run_dbsize(const Call& call);
AfterCommand run_echo(const Call& call);
AfterCommand run_info(const Call& call);
AfterCommand run_ping(const Call& call);
AfterCommand run_readonly(const Call& call);
AfterCommand run_time(const Call& call);

}  // namespace weir
