// The RESP commands: their functions, the table of their names and arities, and what several of them share.
//
// The table has all rate-limiting commands, and enough for every common client to connect (HELLO, CLIENT, INFO,
// COMMAND ...). Error texts are those of Redis. Commands are plain functions in four files: rate limiting
// (resp_limit_commands.cc), transactions (resp_transaction.cc), the connection (resp_client_commands.cc) and the server
// (resp_server_commands.cc). They belong to a loop's thread. Tested by resp_session_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "resp/writer.h"
#include "server/loop/turn.h"
#include "server/resp/resp_service.h"
#include "server/resp/resp_transaction.h"

namespace weir::server::resp {

struct RespClient {
  std::int64_t id = 0;
  weir::resp::Protocol protocol = weir::resp::Protocol::resp2;
  bool is_known = true;  // authenticated, or no password is set
  std::string name{};
  std::string peer{};                              // its address, for the log
  std::unique_ptr<RespTransaction> transaction{};  // from MULTI to the end of EXEC
};

struct Call {
  std::span<const std::string_view> args;  // the command's name is first
  bool is_inline = false;                  // an inline command: the args are not consecutive in the input
  bool is_waiting = false;                 // earlier checks of this client are undecided in the turn
  RespService& service;
  RespContext& context;
  loop::Turn& turn;
  RespClient& client;
  weir::resp::Writer& out;
};

enum class AfterCommand : std::uint8_t {
  go_on,
  asked,      // a check has joined the turn
  wait,       // nothing was done: call again when the turn is settled
  close,      // after the output is written
  hold,       // delay the reply for kWrongSecretDelay
  run_queue,  // EXEC: run the commands of the client's transaction
};

// Runs the command, or queues it if the client has begun a transaction.
AfterCommand take_command(const Call& call);
AfterCommand run_command(const Call& call);

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
  kAtOnce = 64,  // in a transaction: runs, and is not queued
  kAlone = 128,  // not allowed in a transaction
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

// A subcommand, such as GETNAME of CLIENT.
struct RespSubcommand {
  std::string_view name;  // lower case
  std::size_t args_min;   // not counting its name
  std::size_t args_max;
  void (*run)(const Call&);
  std::string_view help;
};

// Runs the subcommand that the first argument names. HELP lists them all, because Redis refers to HELP in its error for
// an unknown subcommand.
void run_subcommand(const Call& call, std::span<const RespSubcommand> known);

// Whether the command cannot run with these arguments by this client. If so, replies with the error.
bool refuses_command(const Call& call, const RespCommand& command);

std::string upper(std::string_view text);
void reply_ok(const Call& call);
// Writes two bulks: a name and its value.
void write_pair(std::string_view name, std::string_view value, weir::resp::Writer& out);

// resp_limit_commands.cc
// Under overload: the reply to a command that has kSheds and, if the turn refuses(), to any other.
void reply_overloaded(const Call& call, const RespCommand& command);
AfterCommand run_cell_throttle(const Call& call);
AfterCommand run_crab_throttle(const Call& call);
AfterCommand run_gcra(const Call& call);
AfterCommand run_weir_check(const Call& call);
AfterCommand run_weir_limit(const Call& call);
AfterCommand run_weir_reset(const Call& call);
AfterCommand run_del(const Call& call);

// resp_transaction.cc
// Adds a command that refuses_command() does not refuse to the client's transaction.
AfterCommand queue_command(const Call& call, const RespCommand& command);
void run_discard(const Call& call);
AfterCommand run_exec(const Call& call);
void run_multi(const Call& call);
void run_unwatch(const Call& call);
void run_watch(const Call& call);

// resp_client_commands.cc; those without a result always go on.
AfterCommand run_auth(const Call& call);
void run_client(const Call& call);
AfterCommand run_hello(const Call& call);
AfterCommand run_quit(const Call& call);
void run_reset(const Call& call);
void run_select(const Call& call);

// resp_server_commands.cc
void run_cluster(const Call& call);
void run_command_command(const Call& call);
void run_config(const Call& call);
void run_dbsize(const Call& call);
void run_echo(const Call& call);
void run_info(const Call& call);
void run_ping(const Call& call);
void run_readonly(const Call& call);
void run_time(const Call& call);

// resp_docs.cc: the COMMAND DOCS entries of the limiting commands, so that redis-cli shows their arguments as hints.
// The names with an entry, by index; empty after the last.
std::string_view documented_command(std::size_t index);

// Writes the name and its entry, two values of a map. Returns false and writes nothing if there is no entry. `name`
// is in lower case.
bool write_docs(std::string_view name, std::string_view version, weir::resp::Writer& out);

}  // namespace weir::server::resp
