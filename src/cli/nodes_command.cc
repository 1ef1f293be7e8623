// `weir nodes`: lists the servers of a fleet, and their Redis.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/fleet_admin.sh.
#include <CLI/CLI.hpp>

#include <string>

#include "cli/command.h"
#include "cli/remote.h"
#include "cli/table_text.h"
#include "protocol/seconds.h"

namespace weir::cli {
namespace {

// Whether the list of servers is old. A server normally reads it from Redis every second.
bool is_out_of_date(const protocol::JsonValue& fleet) {
  constexpr double kBeatsMissed = 3;
  return fleet.at("heard_seconds").number() > kBeatsMissed;
}

// Whether the server stays out of the fleet, because servers in it use another key format.
bool is_barred(const protocol::JsonValue& fleet) { return fleet.at("barred").is_true; }

// Whether the server decides without Redis and does not know of other servers, so that it admits each limit in full.
bool admits_whole_limits(const protocol::JsonValue& fleet) {
  return fleet.at("joined").kind == protocol::JsonValue::Kind::boolean && !fleet.at("joined").is_true &&
         fleet.at("share_of").number() <= 1;
}

std::string own_changes(const protocol::JsonValue& fleet) {
  std::string out;
  for (const protocol::JsonValue& node : fleet.at("nodes").items) {
    const std::string& own = node.at("own_changes").text;
    if (own.empty()) continue;
    out += printable(node.at("id").text + " has runtime changes that other servers lack: " + own) + "\n";
  }
  return out;
}

std::string fleet_words(const protocol::JsonValue& fleet) {
  const std::string& store = fleet.at("store").text;
  if (fleet.at("nodes").kind != protocol::JsonValue::Kind::array) {
    return "counts are in this server's memory only; to share them, use weir serve --store redis://HOST\n";
  }
  TableText table({"server", "host", ">pid", "version", "config", ">rules", ">change", ">seen"});
  for (const protocol::JsonValue& node : fleet.at("nodes").items) {
    table.add({node.at("id").text + (node.at("self").is_true ? " (this server)" : ""), node.at("host").text,
               node.at("pid").text, node.at("version").text, node.at("config").text, node.at("rules").text,
               node.at("change").text, protocol::wait_text(node.at("age_seconds").number()) + " ago"});
  }
  const std::string is_up = fleet.at("up").is_true ? "available" : "UNAVAILABLE";
  std::string out = table.text() + "\n" + base::counted(table.rows(), "server") + " on " + printable(store) + ", " +
                    is_up + " for " + protocol::wait_text(fleet.at("since_seconds").number()) + "\n";
  if (!fleet.at("up").is_true && !is_barred(fleet))
    out += "last error: " + printable(fleet.at("last_error").text) + "\n";
  if (const std::string& others = fleet.at("other_version").text; !others.empty()) {
    out += (is_barred(fleet) ? "this server does not join the fleet: " : "limits admit twice as much: ") +
           printable(others) + "\n";
  }
  if (!is_barred(fleet) && admits_whole_limits(fleet)) {
    out +=
        "this server has not reached Redis since its start: it knows no other server and admits each limit in full\n";
  }
  if (!is_barred(fleet) && is_out_of_date(fleet)) {
    out += "this list is " + protocol::wait_text(fleet.at("heard_seconds").number()) +
           " old: Redis has not answered since\n";
  }
  if (const std::string& why = fleet.at("heartbeat_error").text; !why.empty()) {
    out += "Redis refuses this server's heartbeat, so other servers do not count it: " + printable(why) + "\n";
  }
  if (const std::string& why = fleet.at("changes_error").text; !why.empty()) out += printable(why) + "\n";
  const std::string own = own_changes(fleet);
  out += own;
  if (fleet.at("mixed").is_true) {
    out += "mixed fleet: not all servers have the same version and config";
    out += own.empty() ? "; normal during a rollout\n" : "\n";
  }
  return out;
}

// The exit code for a fleet's state; without a fleet, 0.
int code_of(const protocol::JsonValue& fleet) {
  const bool is_fleet = fleet.at("nodes").kind == protocol::JsonValue::Kind::array;
  const bool is_well = fleet.at("up").is_true && !is_out_of_date(fleet) && fleet.at("heartbeat_error").text.empty() &&
                       fleet.at("other_version").text.empty() && fleet.at("changes_error").text.empty();
  return is_fleet && !is_well ? kCouldNot : 0;
}

class NodesCommand {
 public:
  explicit NodesCommand(CLI::App& app) { server_.add_admin(app); }

  Result<int> run() {
    return server_.print({.method = "GET", .target = "/admin/v1/nodes", .code = code_of}, fleet_words);
  }

 private:
  Remote server_{"--admin", "127.0.0.1:8082"};
};

}  // namespace

const Command kNodesCommand{"nodes", "List the servers of a fleet, and the state of its Redis", declare<NodesCommand>};

}  // namespace weir::cli
