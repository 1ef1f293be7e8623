// The table of commands. See resp_commands.h.
#include "server/resp_commands.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <limits>
#include <vector>

#include "nearest.h"
#include "protocol/throttle.h"
#include "server/resp_call.h"

namespace weir {
namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return out;
}

using Function = AfterCommand (*)(const Call&);

struct Command {
  std::string_view name;  // lower case
  std::size_t args_min;   // without the name
  std::size_t args_max;
  Function run;
};

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

AfterCommand ping(const Call& call) {
  if (call.args.size() == 2) {
    call.out.bulk(call.args[1]);
  } else {
    call.out.simple("PONG");
  }
  return AfterCommand::go_on;
}

AfterCommand echo(const Call& call) {
  call.out.bulk(call.args[1]);
  return AfterCommand::go_on;
}

AfterCommand throttle(const Call& call) {
  const auto request = parse_throttle(call.args.subspan(1));
  const auto limit = request.and_then([](const Throttle& throttle) { return compile(throttle.quota); });
  if (!limit) {
    call.out.error("ERR " + limit.error().message);
    return AfterCommand::go_on;
  }
  const auto decision = call.limiter.check(request->key, *limit, request->cost);
  if (!decision) {
    call.out.error("ERR " + decision.error().message);
    return AfterCommand::go_on;
  }
  const auto reply = throttle_reply(*decision);
  call.out.array(reply.size());
  for (const std::int64_t value : reply) call.out.integer(value);
  return AfterCommand::go_on;
}

AfterCommand info(const Call& call) {
  std::string text = "# Server\r\nredis_version:";
  text.append(kRedisVersion).append("\r\nredis_mode:standalone\r\nweir_version:").append(call.server_version);
  text.append("\r\n\r\n# Persistence\r\nloading:0\r\n\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n");
  text.append("\r\n# Keyspace\r\nweir_keys:").append(std::to_string(call.limiter.size())).append("\r\n");
  call.out.verbatim(text);
  return AfterCommand::go_on;
}

// What redis-benchmark asks for before it begins. There is nothing else to read, and nothing to set.
struct Setting {
  std::string_view name;
  std::string_view value;
};
constexpr Setting kSettings[] = {{"appendonly", "no"}, {"save", ""}};
constexpr std::string_view kConfigHelp[] = {"GET", "    <name> ...: appendonly, save, or * for both."};

void config_get(const Call& call) {
  std::vector<const Setting*> wanted;
  for (const Setting& setting : kSettings) {
    const auto is_named = [&](std::string_view name) { return name == "*" || lower(name) == setting.name; };
    if (std::ranges::any_of(call.args.subspan(2), is_named)) wanted.push_back(&setting);
  }
  call.out.map(wanted.size());
  for (const Setting* setting : wanted) {
    call.out.bulk(setting->name);
    call.out.bulk(setting->value);
  }
}

AfterCommand config(const Call& call) {
  const std::string sub = lower(call.args[1].substr(0, kNameMax));
  if (sub == "help") {
    reply_help(call, kConfigHelp);
  } else if (sub != "get") {
    reply_unknown_subcommand(call);
  } else if (call.args.size() < 3) {
    reply_wrong_arity(call.out, "config|get");
  } else {
    config_get(call);
  }
  return AfterCommand::go_on;
}

AfterCommand command(const Call& call);

constexpr Command kCommands[] = {
    {"auth", 1, 2, run_auth},
    {"cl.throttle", 0, kAny, throttle},  // it words its own arity error
    {"client", 1, kAny, run_client},
    {"command", 0, kAny, command},
    {"config", 1, kAny, config},
    {"echo", 1, 1, echo},
    {"hello", 0, kAny, run_hello},
    {"info", 0, kAny, info},
    {"ping", 0, 1, ping},
    {"quit", 0, kAny, run_quit},
    {"reset", 0, 0, run_reset},
    {"select", 1, 1, run_select},
};

constexpr std::string_view kCommandHelp[] = {"COUNT", "    How many commands there are.",
                                             "DOCS",  "    Nothing; the answer is empty.",
                                             "INFO",  "    [<name> ...]: name, arity, flags and place of keys."};

// An entry as Redis before 7 has it, the first six members, which is what clients read.
void describe(const Command& entry, resp::Writer& out) {
  const bool has_key = entry.run == throttle;
  const auto least = has_key ? 5 : static_cast<std::int64_t>(entry.args_min) + 1;
  out.array(6);
  out.bulk(entry.name);
  out.integer(entry.args_min == entry.args_max ? least : -least);
  out.array(0);
  for (int place = 0; place < 3; ++place) out.integer(has_key ? 1 : 0);  // first key, last key, step
}

void describe_named(std::span<const std::string_view> names, resp::Writer& out) {
  out.array(names.size());
  for (const std::string_view name : names) {
    const auto* found = std::ranges::find(kCommands, lower(name.substr(0, kNameMax)), &Command::name);
    if (found == std::end(kCommands)) {
      out.null();
    } else {
      describe(*found, out);
    }
  }
}

void describe_all(resp::Writer& out) {
  out.array(std::size(kCommands));
  for (const Command& entry : kCommands) describe(entry, out);
}

AfterCommand command(const Call& call) {
  const std::string sub = call.args.size() > 1 ? lower(call.args[1].substr(0, kNameMax)) : "";
  if (sub == "count") {
    call.out.integer(static_cast<std::int64_t>(std::size(kCommands)));
  } else if (sub == "docs") {
    call.out.map(0);
  } else if (sub == "info" && call.args.size() > 2) {
    describe_named(call.args.subspan(2), call.out);
  } else if (sub.empty() || sub == "info") {
    describe_all(call.out);
  } else if (sub == "help") {
    reply_help(call, kCommandHelp);
  } else {
    reply_unknown_subcommand(call);
  }
  return AfterCommand::go_on;
}

void unknown_command(const Call& call) {
  std::string begun;
  for (const std::string_view arg : call.args.subspan(1)) {
    if (begun.size() >= kNameMax) break;
    const std::string_view shown = arg.substr(0, kNameMax - begun.size());
    begun.append("'").append(shown).append("' ");
  }
  std::string message =
      "ERR unknown command '" + std::string(call.args[0].substr(0, kNameMax)) + "', with args beginning with: " + begun;
  std::array<std::string_view, std::size(kCommands)> names;
  std::ranges::transform(kCommands, names.begin(), &Command::name);
  if (const std::string_view meant = nearest(call.args[0], names); !meant.empty()) {
    message.append("; did you mean ").append(upper(meant)).append("?");
  }
  call.out.error(message);
}

}  // namespace

void reply_ok(const Call& call) { call.out.simple("OK"); }

void reply_wrong_arity(resp::Writer& out, std::string_view name) {
  out.error("ERR wrong number of arguments for '" + std::string(name) + "' command");
}

void reply_unknown_subcommand(const Call& call) {
  call.out.error("ERR unknown subcommand '" + std::string(call.args[1].substr(0, kNameMax)) + "'. Try " +
                 upper(call.args[0]) + " HELP.");
}

void reply_help(const Call& call, std::span<const std::string_view> lines) {
  call.out.array(lines.size() + 1);
  call.out.simple(upper(call.args[0]) + " <subcommand> [<arg> ...]. Subcommands are:");
  for (const std::string_view line : lines) call.out.simple(line);
}

AfterCommand run_command(std::span<const std::string_view> args, std::string_view server_version, Limiter& limiter,
                         RespClient& client_state, resp::Writer& out) {
  const Call call{args, server_version, limiter, client_state, out};
  const std::string name = lower(args[0].substr(0, kNameMax));
  // A web page can make a browser send HTTP here; none of what follows may be taken for a command.
  if (name == "post" || name == "host:") return AfterCommand::drop;
  const auto* found = std::ranges::find(kCommands, name, &Command::name);
  if (found == std::end(kCommands)) {
    unknown_command(call);
    return AfterCommand::go_on;
  }
  const std::size_t given = args.size() - 1;
  if (given < found->args_min || given > found->args_max) {
    reply_wrong_arity(out, found->name);
    return AfterCommand::go_on;
  }
  return found->run(call);
}

}  // namespace weir
