// RESP commands about the connection: HELLO, AUTH, CLIENT, SELECT, RESET, QUIT. See resp_call.h.
//
// None of them charges anything. Settings of a client exist as long as its connection, so they are small.
#include <algorithm>
#include <optional>

#include "base/nearest.h"
#include "resp/number.h"
#include "server/resp/resp_call.h"

namespace weir::server::resp {
namespace {

constexpr std::size_t kClientNameMax = 64;
constexpr std::string_view kWrongPassword = "WRONGPASS invalid username-password pair or user is disabled.";

// If no password is set, the default user may give any, as in Redis.
bool may_enter(const RespService& service, std::string_view user, std::string_view password) {
  return user == "default" && (service.password.empty() || observe::is_same_secret(password, service.password));
}

// Treats it like a wrong admin token. If no password is set, there is none to guess.
AfterCommand refuse_password(const Call& call) {
  call.out.error(kWrongPassword);
  if (call.service.password.empty()) return AfterCommand::go_on;
  call.service.bounds.refuse(loop::Refused::password);
  call.service.wrong.note("wrong RESP password", call.client.peer, call.turn.now());
  return AfterCommand::hold;
}

// refuse_client_name()
//
// Like Redis, allows printable characters except space. Redis has no length bound. Here names have one, because an idle
// client keeps its name in memory. Returns true if it wrote an error.
bool refuse_client_name(weir::resp::Writer& out, std::string_view name) {
  if (name.size() > kClientNameMax) {
    out.error("ERR Client names have at most " + std::to_string(kClientNameMax) + " bytes; this one has " +
              std::to_string(name.size()));
    return true;
  }
  if (std::ranges::all_of(name, [](char c) { return c >= '!' && c <= '~'; })) return false;
  out.error("ERR Client names cannot contain spaces, newlines or special characters.");
  return true;
}

constexpr std::string_view kHelloNeedsPassword =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> "
    "option can be used to authenticate the client and select the RESP protocol version at the same time";

AfterCommand refuse_hello(const Call& call, std::string_view error) {
  call.out.error(error);
  return AfterCommand::go_on;
}

struct HelloOptions {
  std::optional<std::string_view> user;
  std::string_view password;
  std::optional<std::string_view> name;
};

// Parses the arguments after the version; false if it wrote an error. Does not check the password.
bool read_hello_options(const Call& call, HelloOptions& options) {
  for (std::size_t i = 2; i < call.args.size(); ++i) {
    const std::string option = base::lower(call.args[i].substr(0, kNameMax));
    const std::size_t left = call.args.size() - i - 1;
    if (option == "auth" && left >= 2) {
      options.user = call.args[i + 1];
      options.password = call.args[i + 2];
      i += 2;
    } else if (option == "setname" && left >= 1) {
      options.name = call.args[++i];
    } else {
      call.out.error("ERR Syntax error in HELLO option '" + std::string(call.args[i].substr(0, kNameMax)) + "'");
      return false;
    }
  }
  return true;
}

// CLIENT's subcommands.

void client_id(const Call& call) { call.out.integer(call.client.id); }

void client_getname(const Call& call) {
  if (call.client.name.empty()) {
    call.out.null();
  } else {
    call.out.bulk(call.client.name);
  }
}

void client_setname(const Call& call) {
  if (refuse_client_name(call.out, call.args[2])) return;
  call.client.name = call.args[2];
  reply_ok(call);
}

void client_setinfo(const Call& call) {
  const std::string option = base::lower(call.args[2].substr(0, kNameMax));
  if (option == "lib-name" || option == "lib-ver") return reply_ok(call);
  call.out.error("ERR Unrecognized option '" + std::string(call.args[2].substr(0, kNameMax)) + "'");
}

void client_info(const Call& call) {
  std::string line =
      "id=" + std::to_string(call.client.id) + " name=" + call.client.name +
      " flags=N db=0 cmd=client|info user=default resp=" + std::to_string(static_cast<int>(call.client.protocol)) +
      "\n";
  call.out.verbatim(line);
}

void client_switch(const Call& call) {
  const std::string value = base::lower(call.args[2].substr(0, kNameMax));
  if (value == "on" || value == "off") return reply_ok(call);
  call.out.error("ERR syntax error");
}

void client_reply(const Call& call) {
  const std::string value = base::lower(call.args[2].substr(0, kNameMax));
  if (value == "on") return reply_ok(call);
  call.out.error(value == "off" || value == "skip"
                     ? "ERR CLIENT REPLY OFF and SKIP are not supported; use CLIENT REPLY ON"
                     : "ERR syntax error");
}

void client_caching(const Call& call) {
  const std::string value = base::lower(call.args[2].substr(0, kNameMax));
  if (value == "yes" || value == "no") return reply_ok(call);
  call.out.error("ERR syntax error");
}

constexpr RespSubcommand kClient[] = {
    {"caching", 1, 1, client_caching, "(YES|NO): accepted, without effect."},
    {"getname", 0, 0, client_getname, "The name of this connection."},
    {"id", 0, 0, client_id, "The number of this connection."},
    {"info", 0, 0, client_info, "This connection: id, name and protocol."},
    {"list", 0, kAnyNumber, client_info, "The same; only this connection is listed."},
    {"no-evict", 1, 1, client_switch, "(ON|OFF): accepted, without effect."},
    {"no-touch", 1, 1, client_switch, "(ON|OFF): accepted, without effect."},
    {"reply", 1, 1, client_reply, "ON: the default. OFF and SKIP are refused."},
    {"setinfo", 2, 2, client_setinfo, "(LIB-NAME|LIB-VER) <value>: accepted, not stored."},
    {"setname", 1, 1, client_setname, "<name>: names this connection."},
    {"tracking", 1, kAnyNumber, client_switch,
     "(ON|OFF) [<option> ...]: accepted, without effect: no reply may be cached."},
};

}  // namespace

AfterCommand run_quit(const Call& call) {
  reply_ok(call);
  return AfterCommand::close;
}

void run_reset(const Call& call) {
  call.client.protocol = weir::resp::Protocol::resp2;
  call.client.name.clear();
  call.client.transaction.reset();
  call.client.is_known = call.service.password.empty();
  call.out.set_protocol(call.client.protocol);
  call.out.simple("RESET");
}

void run_select(const Call& call) {
  const auto index = weir::resp::parse_integer(call.args[1]);
  if (!index) {
    call.out.error("ERR value is not an integer or out of range");
  } else if (*index != 0) {
    call.out.error("ERR DB index is out of range");
  } else {
    reply_ok(call);
  }
}

AfterCommand run_auth(const Call& call) {
  const bool has_user = call.args.size() == 3;
  if (!has_user && call.service.password.empty()) {
    call.out.error(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
        "configuration is correct?");
  } else if (!may_enter(call.service, has_user ? call.args[1] : "default", call.args.back())) {
    return refuse_password(call);
  } else {
    call.client.is_known = true;
    reply_ok(call);
  }
  return AfterCommand::go_on;
}

AfterCommand run_hello(const Call& call) {
  weir::resp::Protocol protocol = call.client.protocol;
  HelloOptions options;
  if (call.args.size() > 1) {
    const auto version = weir::resp::parse_integer(call.args[1]);
    if (!version) return refuse_hello(call, "ERR Protocol version is not an integer or out of range");
    if (*version != 2 && *version != 3) return refuse_hello(call, "NOPROTO unsupported protocol version");
    protocol = *version == 3 ? weir::resp::Protocol::resp3 : weir::resp::Protocol::resp2;
    if (!read_hello_options(call, options)) return AfterCommand::go_on;
    if (options.user && !may_enter(call.service, *options.user, options.password)) return refuse_password(call);
    if (options.name && refuse_client_name(call.out, *options.name)) return AfterCommand::go_on;
  }
  if (!call.client.is_known && !options.user) return refuse_hello(call, kHelloNeedsPassword);
  call.client.is_known = true;
  if (options.name) call.client.name = *options.name;
  call.client.protocol = protocol;
  weir::resp::Writer& out = call.out;
  out.set_protocol(protocol);
  out.map(7);
  write_pair("server", "weir", out);
  write_pair("version", kRedisVersion, out);
  out.bulk("proto");
  out.integer(static_cast<std::int64_t>(protocol));
  out.bulk("id");
  out.integer(call.client.id);
  write_pair("mode", "standalone", out);
  write_pair("role", "master", out);
  out.bulk("modules");
  out.array(0);
  return AfterCommand::go_on;
}

void run_client(const Call& call) { run_subcommand(call, kClient); }

}  // namespace weir::server::resp
