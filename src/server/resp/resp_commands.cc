// The table of RESP commands, and the lookup in it. See resp_call.h.
//
// The names are in a hash table made at compile time, since the lookup is on the path of every request. Tested by
// resp_session_test.cc.
#include "server/resp/resp_call.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "base/nearest.h"
#include "protocol/http1.h"

namespace weir::server::resp {
namespace {

template <void (*run)(const Call&)>
AfterCommand goes_on(const Call& call) {
  run(call);
  return AfterCommand::go_on;
}

constexpr RespCommand kCommands[] = {
    {"auth", 1, 2, run_auth, kForAll | kWaits | kAlone},
    {"cl.throttle", 0, kAnyNumber, run_cell_throttle, kHasKey | kSheds},  // has its own arity error
    {"client", 1, kAnyNumber, goes_on<run_client>, 0},
    {"cluster", 1, kAnyNumber, goes_on<run_cluster>, 0},
    {"command", 0, kAnyNumber, goes_on<run_command_command>, 0},
    {"config", 1, kAnyNumber, goes_on<run_config>, 0},
    {"dbsize", 0, 0, goes_on<run_dbsize>, kWaits | kAsks},
    {"del", 1, kAnyNumber, run_del, kWaits | kHasKeys | kAsks},
    {"discard", 0, 0, goes_on<run_discard>, kAtOnce},
    {"echo", 1, 1, goes_on<run_echo>, 0},
    {"exec", 0, 0, run_exec, kAtOnce},
    {"gcra", 4, 6, run_gcra, kHasKey | kSheds},
    {"hello", 0, kAnyNumber, run_hello, kForAll | kWaits | kAlone},
    {"info", 0, kAnyNumber, goes_on<run_info>, kWaits | kAsks},
    {"multi", 0, 0, goes_on<run_multi>, kWaits | kAtOnce},  // it waits because a queue stays in place for its turn
    {"ping", 0, 1, goes_on<run_ping>, 0},
    {"quit", 0, kAnyNumber, run_quit, kForAll | kWaits | kAtOnce},
    {"readonly", 0, 0, goes_on<run_readonly>, 0},
    {"reset", 0, 0, goes_on<run_reset>, kForAll | kWaits | kAtOnce},
    {"select", 1, 1, goes_on<run_select>, 0},
    {"throttle", 4, 5, run_crab_throttle, kHasKey | kSheds},
    {"time", 0, 0, goes_on<run_time>, 0},
    {"unwatch", 0, 0, goes_on<run_unwatch>, 0},
    {"watch", 1, kAnyNumber, goes_on<run_watch>, kHasKeys | kAtOnce},
    {"weir.check", 1, kAnyNumber, run_weir_check, kWaits | kSheds},
    {"weir.limit", 2, kAnyNumber, run_weir_limit, kHasKey | kSheds},
    {"weir.reset", 1, kAnyNumber, run_weir_reset, kWaits | kAsks},
};

// A hash table of the names, by length and two letters, with linear probing.
constexpr std::size_t kPlaces = 64;
constexpr std::size_t place_of(std::string_view name) {
  const auto letter = [](char c) { return static_cast<std::size_t>(static_cast<unsigned char>(c) | 0x20); };
  return (name.size() * 7 + letter(name.front()) * 5 + letter(name.back())) % kPlaces;
}
constexpr auto kIndex = [] {
  std::array<std::uint8_t, kPlaces> index{};  // 0: free, otherwise the row + 1
  for (std::size_t row = 0; row < std::size(kCommands); ++row) {
    std::size_t place = place_of(kCommands[row].name);
    while (index[place] != 0) place = (place + 1) % kPlaces;
    index[place] = static_cast<std::uint8_t>(row + 1);
  }
  return index;
}();
static_assert(std::size(kCommands) < kPlaces / 2);
static_assert(std::ranges::all_of(kCommands, [](const RespCommand& each) { return each.name.size() <= 16; }));

// A web page can make a browser send HTTP to this port; nothing after this line may run as a command.
bool is_of_browser(std::string_view name) {
  return protocol::equals_ignoring_case(name, "post") || protocol::equals_ignoring_case(name, "host:");
}

void reply_wrong_arity(weir::resp::Writer& out, const std::string& name) {
  out.error("ERR wrong number of arguments for '" + name + "' command");
}

void reply_help(const Call& call, std::span<const RespSubcommand> known) {
  call.out.array(2 * known.size() + 1);
  call.out.simple(upper(call.args[0]) + " <subcommand> [<arg> ...]. Subcommands are:");
  for (const RespSubcommand& each : known) {
    call.out.simple(upper(each.name));
    call.out.simple("    " + std::string(each.help));
  }
}

void reply_unknown_command(const Call& call) {
  std::string begun;
  for (const std::string_view arg : call.args.subspan(1)) {
    if (begun.size() >= kNameMax) break;
    const std::string_view shown = arg.substr(0, kNameMax - begun.size());
    begun.append("'").append(shown).append("' ");
  }
  std::string message =
      "ERR unknown command '" + std::string(call.args[0].substr(0, kNameMax)) + "', with args beginning with: " + begun;
  std::array<std::string_view, std::size(kCommands)> names;
  std::ranges::transform(kCommands, names.begin(), &RespCommand::name);
  if (const std::string_view meant = base::nearest(call.args[0], names); !meant.empty()) {
    message.append("; did you mean ").append(upper(meant)).append("?");
  }
  call.out.error(message);
}

AfterCommand run_unknown(const Call& call) {
  if (!is_of_browser(call.args[0])) {
    reply_unknown_command(call);
    return AfterCommand::go_on;
  }
  return call.is_waiting ? AfterCommand::wait : AfterCommand::close;
}

}  // namespace

std::span<const RespCommand> all_commands() { return kCommands; }

const RespCommand* find_command(std::string_view name) {
  if (name.empty()) return nullptr;
  for (std::size_t place = place_of(name); kIndex[place] != 0; place = (place + 1) % kPlaces) {
    const RespCommand& command = kCommands[kIndex[place] - 1];
    if (protocol::equals_ignoring_case(name, command.name)) return &command;
  }
  return nullptr;
}

namespace {

inline const RespCommand* find_again(LastCommand& last, std::string_view name) {
  if (name.size() == last.size && std::memcmp(name.data(), last.name, last.size) == 0) return last.command;
  const RespCommand* const found = find_command(name);
  if (found != nullptr) {
    last.size = name.copy(last.name, sizeof last.name);
    last.command = found;
  }
  return found;
}

// Whether one of its keys is too long; if so, replies with the error.
inline bool has_long_key(const Call& call, const RespCommand& command) {
  if ((command.traits & (kHasKey | kHasKeys)) == 0) return false;
  const std::size_t keys = (command.traits & kHasKeys) != 0 ? call.args.size() - 1 : 1;
  for (const std::string_view key : call.args.subspan(1).first(std::min(keys, call.args.size() - 1))) {
    if (call.service.bounds.takes_key(key)) continue;
    call.service.bounds.refuse(loop::Refused::key);
    call.out.error("ERR " + refuse_key(key, call.service.bounds.key_max)->message);
    return true;
  }
  return false;
}

}  // namespace

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return out;
}

void reply_ok(const Call& call) { call.out.simple("OK"); }

void write_pair(std::string_view name, std::string_view value, weir::resp::Writer& out) {
  out.bulk(name);
  out.bulk(value);
}

void run_subcommand(const Call& call, std::span<const RespSubcommand> known) {
  const std::string_view name = call.args[1].substr(0, kNameMax);
  const std::string sub = base::lower(name);
  if (sub == "help") return reply_help(call, known);
  const auto found = std::ranges::find(known, sub, &RespSubcommand::name);
  const std::size_t given = call.args.size() - 2;
  if (found == known.end()) {
    call.out.error("ERR unknown subcommand '" + std::string(name) + "'. Try " + upper(call.args[0]) + " HELP.");
  } else if (given < found->args_min || given > found->args_max) {
    reply_wrong_arity(call.out, base::lower(call.args[0]) + "|" + sub);
  } else {
    found->run(call);
  }
}

bool refuses_command(const Call& call, const RespCommand& command) {
  const std::size_t given = call.args.size() - 1;
  if (given < command.args_min || given > command.args_max) {
    reply_wrong_arity(call.out, std::string(command.name));
    return true;
  }
  if (!call.client.is_known && (command.traits & kForAll) == 0) {
    call.out.error("NOAUTH Authentication required.");
    return true;
  }
  return has_long_key(call, command);
}

AfterCommand take_command(const Call& call) {
  WEIR_ASSERT(!call.args.empty());
  RespTransaction* const transaction = call.client.transaction.get();
  if (transaction == nullptr) return run_command(call);
  const RespCommand* const command = find_again(call.context.last, call.args[0]);
  if (command == nullptr || refuses_command(call, *command)) {
    transaction->spoil();
    return command == nullptr ? run_unknown(call) : AfterCommand::go_on;
  }
  return (command->traits & kAtOnce) != 0 ? run_command(call) : queue_command(call, *command);
}

AfterCommand run_command(const Call& call) {
  const RespCommand* const command = find_again(call.context.last, call.args[0]);
  if (command == nullptr) return run_unknown(call);
  if (refuses_command(call, *command)) return AfterCommand::go_on;
  if (call.turn.sheds() && (command->traits & (call.turn.refuses() ? kSheds | kAsks : kSheds)) != 0) {
    reply_overloaded(call, *command);
    return AfterCommand::go_on;
  }
  if (call.is_waiting && (command->traits & kWaits) != 0) return AfterCommand::wait;
  return command->run(call);
}

}  // namespace weir::server::resp
