// RESP commands about the server: PING, ECHO, INFO, TIME, DBSIZE, COMMAND, CONFIG, CLUSTER, READONLY. See
// resp_call.h.
//
// None of them charges anything. Commands that clients only send while connecting are answered as a single Redis
// would.
#include <algorithm>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "server/resp/resp_call.h"

namespace weir::server::resp {
namespace {

struct Section {
  std::string_view name;
  std::string text;  // its lines
};

std::vector<Section> info_sections(const Call& call) {
  const std::string keys = std::to_string(call.service.limiter.size());
  return {{"Server", "redis_version:" + std::string(kRedisVersion) +
                         "\r\nredis_mode:standalone\r\nweir_version:" + call.service.version + "\r\n"},
          {"Persistence", "loading:0\r\n"},
          {"Replication", "role:master\r\nconnected_slaves:0\r\n"},
          {"Cluster", "cluster_enabled:0\r\n"},
          {"Keyspace", "weir_keys:" + keys + "\r\n"}};
}

bool is_wanted(const Call& call, std::string_view section) {
  if (call.args.size() == 1) return true;
  return std::ranges::any_of(call.args.subspan(1), [&](std::string_view arg) {
    const std::string name = base::lower(arg.substr(0, kNameMax));
    return name == "all" || name == "default" || name == "everything" || name == base::lower(section);
  });
}

// The settings that redis-benchmark and redis-cli read before they start. There are no others, and none can be set.
struct Setting {
  std::string_view name;
  std::string_view value;
};
constexpr Setting kSettings[] = {{"appendonly", "no"}, {"databases", "1"}, {"save", ""}};

void config_get(const Call& call) {
  std::vector<const Setting*> wanted;
  for (const Setting& setting : kSettings) {
    const auto is_named = [&](std::string_view name) {
      return name == "*" || base::lower(name.substr(0, kNameMax)) == setting.name;
    };
    if (std::ranges::any_of(call.args.subspan(2), is_named)) wanted.push_back(&setting);
  }
  call.out.map(wanted.size());
  for (const Setting* setting : wanted) write_pair(setting->name, setting->value, call.out);
}

// A command's entry in the format of Redis before 7: the six members that clients read.
void describe(const RespCommand& entry, weir::resp::Writer& out) {
  const bool is_counted = entry.run == run_cell_throttle;  // it checks its arity itself
  const std::int64_t least = is_counted ? 5 : static_cast<std::int64_t>(entry.args_min) + 1;
  const bool has_key = (entry.traits & (kHasKey | kHasKeys)) != 0;
  out.array(6);
  out.bulk(entry.name);
  out.integer(entry.args_min == entry.args_max ? least : -least);
  out.array(has_key ? 2 : 0);
  if (has_key) out.simple("write");
  if (has_key) out.simple("fast");
  out.integer(has_key ? 1 : 0);                                        // the first key
  out.integer((entry.traits & kHasKeys) != 0 ? -1 : has_key ? 1 : 0);  // the last key
  out.integer(has_key ? 1 : 0);                                        // the step between them
}

void command_info(const Call& call) {
  if (call.args.size() <= 2) {
    call.out.array(all_commands().size());
    for (const RespCommand& entry : all_commands()) describe(entry, call.out);
    return;
  }
  call.out.array(call.args.size() - 2);
  for (const std::string_view name : call.args.subspan(2)) {
    if (const RespCommand* found = find_command(name)) {
      describe(*found, call.out);
    } else {
      call.out.null();
    }
  }
}

void command_docs(const Call& call) {
  std::vector<std::string> names;
  for (const std::string_view name : call.args.subspan(2)) names.push_back(base::lower(name.substr(0, kNameMax)));
  if (names.empty()) {
    for (std::size_t i = 0; !documented_command(i).empty(); ++i) names.emplace_back(documented_command(i));
  }
  std::string entries;
  weir::resp::Writer out(entries, call.out.protocol());
  std::size_t count = 0;
  for (const std::string& name : names) count += write_docs(name, call.service.version, out) ? 1u : 0u;
  call.out.map(count);
  call.out.raw(entries);
}

void command_getkeys(const Call& call) {
  const RespCommand* const found = find_command(call.args[2]);
  const std::size_t given = call.args.size() - 3;
  if (found == nullptr) return call.out.error("ERR Invalid command specified");
  if ((found->traits & (kHasKey | kHasKeys)) == 0) return call.out.error("ERR The command has no key arguments");
  if (given < std::max<std::size_t>(found->args_min, 1) || given > found->args_max) {
    return call.out.error("ERR Invalid number of arguments specified for command");
  }
  const auto keys = call.args.subspan(3, (found->traits & kHasKeys) != 0 ? given : 1);
  call.out.array(keys.size());
  for (const std::string_view key : keys) call.out.bulk(key);
}

void command_list(const Call& call) {
  call.out.array(all_commands().size());
  for (const RespCommand& entry : all_commands()) call.out.bulk(entry.name);
}

void command_count(const Call& call) { call.out.integer(static_cast<std::int64_t>(all_commands().size())); }

constexpr RespSubcommand kConfig[] = {
    {"get", 1, kAnyNumber, config_get, "<name> ...: appendonly, databases, save, or * for all."},
};
constexpr RespSubcommand kCommand[] = {
    {"count", 0, kAnyNumber, command_count, "The number of commands."},
    {"docs", 0, kAnyNumber, command_docs, "[<name> ...]: the rate limit commands and their arguments."},
    {"getkeys", 1, kAnyNumber, command_getkeys, "<command> [<arg> ...]: the keys of this command."},
    {"info", 0, kAnyNumber, command_info, "[<name> ...]: name, arity, flags and key positions."},
    {"list", 0, kAnyNumber, command_list, "The names of all commands."},
};

}  // namespace

void run_ping(const Call& call) {
  if (call.args.size() == 2) {
    call.out.bulk(call.args[1]);
  } else {
    call.out.simple("PONG");
  }
}

void run_echo(const Call& call) { call.out.bulk(call.args[1]); }

void run_readonly(const Call& call) { reply_ok(call); }

void run_cluster(const Call& call) { call.out.error("ERR This instance has cluster support disabled"); }

void run_dbsize(const Call& call) { call.out.integer(static_cast<std::int64_t>(call.service.limiter.size())); }

void run_time(const Call& call) {
  constexpr std::int64_t kMicrosPerSecond = 1'000'000;
  const std::int64_t now_us = call.service.limiter.now().count();
  call.out.array(2);
  call.out.bulk(std::to_string(now_us / kMicrosPerSecond));
  call.out.bulk(std::to_string(now_us % kMicrosPerSecond));
}

void run_info(const Call& call) {
  std::string text;
  for (const Section& section : info_sections(call)) {
    if (!is_wanted(call, section.name)) continue;
    text.append(text.empty() ? "" : "\r\n").append("# ").append(section.name).append("\r\n").append(section.text);
  }
  call.out.verbatim(text);
}

void run_config(const Call& call) { run_subcommand(call, kConfig); }

void run_command_command(const Call& call) {
  if (call.args.size() == 1) return command_info(call);
  run_subcommand(call, kCommand);
}

}  // namespace weir::server::resp
