// The table of commands. See resp_commands.h.
#include "server/resp_commands.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "nearest.h"
#include "protocol/throttle.h"
#include "resp/number.h"

namespace weir {
namespace {

// The Redis whose replies these are. Clients choose features by it.
constexpr std::string_view kRedisVersion = "7.0.15";
constexpr std::size_t kNameMax = 128;  // of what an error repeats of an unknown command

struct Call {
  std::span<const std::string_view> args;  // the command's name first
  std::string_view server_version;
  Limiter& limiter;
  RespClient& client;
  resp::Writer& out;
};

using Function = AfterCommand (*)(const Call&);

struct Command {
  std::string_view name;  // lower case
  std::size_t args_min;   // without the name
  std::size_t args_max;
  Function run;
};

constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();

void ok(const Call& call) { call.out.simple("OK"); }

void wrong_arity(resp::Writer& out, std::string_view name) {
  out.error("ERR wrong number of arguments for '" + std::string(name) + "' command");
}

// Redis allows what prints and is not a space.
bool is_client_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; });
}

constexpr std::string_view kBadName = "ERR Client names cannot contain spaces, newlines or special characters.";

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

AfterCommand quit(const Call& call) {
  ok(call);
  return AfterCommand::close;
}

AfterCommand reset(const Call& call) {
  call.client.protocol = resp::Protocol::resp2;
  call.client.name.clear();
  call.out.set_protocol(call.client.protocol);
  call.out.simple("RESET");
  return AfterCommand::go_on;
}

AfterCommand select(const Call& call) {
  const auto index = resp::parse_integer(call.args[1]);
  if (!index) {
    call.out.error("ERR value is not an integer or out of range");
  } else if (*index != 0) {
    call.out.error("ERR DB index is out of range");
  } else {
    ok(call);
  }
  return AfterCommand::go_on;
}

AfterCommand auth(const Call& call) {
  if (call.args.size() == 2) {
    call.out.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?");
  } else if (call.args[1] != "default") {
    call.out.error("WRONGPASS invalid username-password pair or user is disabled.");
  } else {
    ok(call);
  }
  return AfterCommand::go_on;
}

struct HelloOptions {
  std::optional<std::string_view> user;
  std::optional<std::string_view> name;
};

// Reads what follows the version; false when an error was written.
bool read_hello_options(const Call& call, HelloOptions& options) {
  for (std::size_t i = 2; i < call.args.size(); ++i) {
    const std::string option = lower(call.args[i]);
    const std::size_t left = call.args.size() - i - 1;
    if (option == "auth" && left >= 2) {
      options.user = call.args[i + 1];
      i += 2;
    } else if (option == "setname" && left >= 1) {
      options.name = call.args[++i];
    } else {
      call.out.error("ERR Syntax error in HELLO option '" + std::string(call.args[i].substr(0, kNameMax)) + "'");
      return false;
    }
  }
  if (options.user && *options.user != "default") {
    call.out.error("WRONGPASS invalid username-password pair or user is disabled.");
    return false;
  }
  if (options.name && !is_client_name(*options.name)) {
    call.out.error(kBadName);
    return false;
  }
  return true;
}

AfterCommand hello(const Call& call) {
  resp::Protocol protocol = call.client.protocol;
  HelloOptions options;
  if (call.args.size() > 1) {
    const auto version = resp::parse_integer(call.args[1]);
    if (!version) {
      call.out.error("ERR Protocol version is not an integer or out of range");
      return AfterCommand::go_on;
    }
    if (*version != 2 && *version != 3) {
      call.out.error("NOPROTO unsupported protocol version");
      return AfterCommand::go_on;
    }
    protocol = *version == 3 ? resp::Protocol::resp3 : resp::Protocol::resp2;
    if (!read_hello_options(call, options)) return AfterCommand::go_on;
  }
  if (options.name) call.client.name = *options.name;
  call.client.protocol = protocol;
  resp::Writer& out = call.out;
  out.set_protocol(protocol);
  out.map(7);
  out.bulk("server");
  out.bulk("weir");
  out.bulk("version");
  out.bulk(kRedisVersion);
  out.bulk("proto");
  out.integer(static_cast<std::int64_t>(protocol));
  out.bulk("id");
  out.integer(call.client.id);
  out.bulk("mode");
  out.bulk("standalone");
  out.bulk("role");
  out.bulk("master");
  out.bulk("modules");
  out.array(0);
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

void unknown_subcommand(const Call& call) {
  std::string text = "ERR unknown subcommand '" + std::string(call.args[1].substr(0, kNameMax)) + "'. Try ";
  std::string name(call.args[0]);
  std::ranges::transform(name, name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  call.out.error(text + name + " HELP.");
}

AfterCommand client(const Call& call) {
  const std::string sub = lower(call.args[1]);
  const std::size_t given = call.args.size() - 2;
  const std::size_t wanted = sub == "setinfo" ? 2 : sub == "setname" ? 1 : 0;
  if (sub != "setinfo" && sub != "setname" && sub != "getname" && sub != "id") {
    unknown_subcommand(call);
  } else if (given != wanted) {
    wrong_arity(call.out, "client|" + sub);
  } else if (sub == "id") {
    call.out.integer(call.client.id);
  } else if (sub == "getname") {
    if (call.client.name.empty()) {
      call.out.null();
    } else {
      call.out.bulk(call.client.name);
    }
  } else if (sub == "setname" && !is_client_name(call.args[2])) {
    call.out.error(kBadName);
  } else {
    if (sub == "setname") call.client.name = call.args[2];
    ok(call);
  }
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

AfterCommand config(const Call& call) {
  if (lower(call.args[1]) == "get" && call.args.size() > 2) {
    call.out.map(0);
  } else {
    unknown_subcommand(call);
  }
  return AfterCommand::go_on;
}

AfterCommand command(const Call& call);

constexpr Command kCommands[] = {
    {"auth", 1, 2, auth},        {"cl.throttle", 0, kAny, throttle},  // it words its own arity error
    {"client", 1, kAny, client}, {"command", 0, kAny, command},
    {"config", 1, kAny, config}, {"echo", 1, 1, echo},
    {"hello", 0, kAny, hello},   {"info", 0, kAny, info},
    {"ping", 0, 1, ping},        {"quit", 0, kAny, quit},
    {"reset", 0, 0, reset},      {"select", 1, 1, select},
};

AfterCommand command(const Call& call) {
  const std::string sub = call.args.size() > 1 ? lower(call.args[1]) : "";
  if (sub.empty()) {
    call.out.array(0);
  } else if (sub == "count") {
    call.out.integer(static_cast<std::int64_t>(std::size(kCommands)));
  } else if (sub == "docs") {
    call.out.map(0);
  } else if (sub == "info") {
    call.out.array(0);
  } else {
    unknown_subcommand(call);
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
  call.out.error("ERR unknown command '" + std::string(call.args[0].substr(0, kNameMax)) +
                 "', with args beginning with: " + begun);
}

}  // namespace

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
    wrong_arity(out, found->name);
    return AfterCommand::go_on;
  }
  return found->run(call);
}

}  // namespace weir
