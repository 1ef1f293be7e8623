// Commands about the connection itself: HELLO, AUTH, CLIENT, SELECT, RESET, QUIT. See resp_call.h.
//
// Nothing here charges anything. What a client sets lives as long as its connection, so it is small.
#include <algorithm>
#include <optional>

#include "nearest.h"
#include "resp/number.h"
#include "server/resp_call.h"

namespace weir {
namespace {

constexpr std::size_t kClientNameMax = 64;
constexpr std::string_view kClientHelp[] = {"GETNAME", "    The name of this connection.",
                                            "ID",      "    The number of this connection.",
                                            "SETINFO", "    <option> <value>: accepted, and not kept.",
                                            "SETNAME", "    <name>: names this connection."};

// refuse_client_name()
//
// Redis allows what prints and is not a space. It has no bound, but ours are kept for as long as a client is idle.
// True when an error was written.
bool refuse_client_name(resp::Writer& out, std::string_view name) {
  if (name.size() > kClientNameMax) {
    out.error("ERR Client names have at most " + std::to_string(kClientNameMax) + " bytes; this one has " +
              std::to_string(name.size()));
    return true;
  }
  if (std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; })) return false;
  out.error("ERR Client names cannot contain spaces, newlines or special characters.");
  return true;
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
  return !options.name || !refuse_client_name(call.out, *options.name);
}

}  // namespace

AfterCommand run_quit(const Call& call) {
  reply_ok(call);
  return AfterCommand::close;
}

AfterCommand run_reset(const Call& call) {
  call.client.protocol = resp::Protocol::resp2;
  call.client.name.clear();
  call.out.set_protocol(call.client.protocol);
  call.out.simple("RESET");
  return AfterCommand::go_on;
}

AfterCommand run_select(const Call& call) {
  const auto index = resp::parse_integer(call.args[1]);
  if (!index) {
    call.out.error("ERR value is not an integer or out of range");
  } else if (*index != 0) {
    call.out.error("ERR DB index is out of range");
  } else {
    reply_ok(call);
  }
  return AfterCommand::go_on;
}

AfterCommand run_auth(const Call& call) {
  if (call.args.size() == 2) {
    call.out.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?");
  } else if (call.args[1] != "default") {
    call.out.error("WRONGPASS invalid username-password pair or user is disabled.");
  } else {
    reply_ok(call);
  }
  return AfterCommand::go_on;
}

AfterCommand run_hello(const Call& call) {
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

AfterCommand run_client(const Call& call) {
  const std::string sub = lower(call.args[1]);
  const std::size_t given = call.args.size() - 2;
  if (sub == "help") {
    reply_help(call, kClientHelp);
    return AfterCommand::go_on;
  }
  const std::size_t wanted = sub == "setinfo" ? 2 : sub == "setname" ? 1 : 0;
  if (sub != "setinfo" && sub != "setname" && sub != "getname" && sub != "id") {
    reply_unknown_subcommand(call);
  } else if (given != wanted) {
    reply_wrong_arity(call.out, "client|" + sub);
  } else if (sub == "id") {
    call.out.integer(call.client.id);
  } else if (sub == "getname") {
    if (call.client.name.empty()) {
      call.out.null();
    } else {
      call.out.bulk(call.client.name);
    }
  } else if (sub != "setname" || !refuse_client_name(call.out, call.args[2])) {
    if (sub == "setname") call.client.name = call.args[2];
    reply_ok(call);
  }
  return AfterCommand::go_on;
}

}  // namespace weir
