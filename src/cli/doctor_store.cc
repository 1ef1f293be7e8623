// One function for each aspect of the Redis that a server shares with others. See doctor.h.
//
// Pure. One thread. Tested by doctor_store_test.cc and tests/server/fleet_admin.sh.
#include "cli/doctor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "cli/table_text.h"
#include "protocol/seconds.h"

namespace weir::cli {
namespace {

using Version = std::array<int, 3>;

constexpr double kLately = 60;  // seconds

Version parse_version(std::string_view text) {
  Version out{};
  for (int& part : out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc{}) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with('.')) text.remove_prefix(1);
  }
  return out;
}

// What an error from Redis means, and what to do.
std::pair<std::string_view, std::string_view> cause_of(std::string_view error) {
  constexpr std::pair<std::string_view, std::pair<std::string_view, std::string_view>> kCauses[] = {
      {"password file", {"", "fix the file: the server reads it at each connect, without a restart"}},
      {"name a file that", {"", "fix the file: the server reads it at each connect, without a restart"}},
      {"write redis", {"", "fix the address in --store, or in `store` of the config; then restart the server"}},
      {"NOPERM", {"its user lacks permissions", "grant those in docs/fleet.md, \"Redis user (ACL)\""}},
      {"NOAUTH", {"it requires a password", "set one: redis://user@host?password_file=FILE"}},
      {"WRONGPASS", {"wrong user or password", "compare ACL LIST in Redis with the password file here"}},
      {"OOM", {"it is out of memory", "raise maxmemory, or use a separate Redis for limits"}},
      {"READONLY", {"it is a replica", "use the master's address, or the sentinels: redis+sentinel://a,b,c/name"}},
      {"MISCONF", {"it cannot save to disk and refuses writes", "see the log of Redis: often the disk is full"}},
      {"LOADING", {"it is loading its data", "wait; a smaller data set loads faster"}},
      {"CLUSTERDOWN", {"the cluster does not serve all of its slots", "redis-cli --cluster check HOST:PORT"}},
      {"BUSY", {"a script blocks it", "redis-cli SCRIPT KILL: Weir's own scripts take microseconds"}},
      {"refused", {"nothing listens at this address", "start Redis, or fix the address"}},
      {"certificate", {"its certificate is not trusted", "name its CA: ?ca=FILE"}},
  };
  for (const auto& [word, cause] : kCauses) {
    if (error.find(word) != error.npos) return cause;
  }
  return {"", "check that this machine reaches it: redis-cli -u URL ping"};
}

// True if this explains why Redis is not used.
bool look_at_other_versions(const protocol::JsonValue& nodes, Findings& out) {
  const std::string& others = nodes.at("other_version").text;
  if (others.empty()) return false;
  const bool is_barred = nodes.at("barred").is_true;
  bad(out,
      is_barred ? "this server does not join the fleet, and each rule's on_backend_error applies: " + others
                : "servers with another key format count separately, so limits admit twice as much: " + others,
      "stop all servers of one version, or give them another --store-prefix");
  return is_barred;
}

void look_at_reach(const protocol::JsonValue& nodes, Findings& out) {
  const std::string& store = nodes.at("store").text;
  const std::string& error = nodes.at("last_error").text;
  const auto [cause, advice] = cause_of(error);
  const std::string why = (cause.empty() ? "" : std::string(cause) + ": ") + (error.empty() ? "no answer" : error);
  if (!nodes.at("up").is_true) {
    return bad(
        out,
        store + " has been unavailable for " + protocol::wait_text(nodes.at("since_seconds").number()) + ": " + why,
        std::string(advice) + "; until then, each rule's on_backend_error applies");
  }
  fine(out, "limits are shared through " + store);
  const double age = nodes.at("last_error_age_seconds").number();
  if (error.empty() || age > kLately) return;
  warn(out, store + " failed " + protocol::wait_text(age) + " ago: " + why,
       std::string(advice) + "; during a failure, each rule's on_backend_error applies");
}

void look_at_joining(const protocol::JsonValue& nodes, Findings& out) {
  const bool has_said = nodes.at("joined").kind == protocol::JsonValue::Kind::boolean;
  if (!has_said || nodes.at("joined").is_true || nodes.at("share_of").number() > 1) return;
  warn(out, "this server has not reached Redis since its start: it knows no other server and admits each limit in full",
       "with --state FILE, a server knows the fleet's size after a restart; without it, start it while Redis is "
       "available");
}

void look_at_channel(const protocol::JsonValue& nodes, Findings& out) {
  const std::string& error = nodes.at("channel_error").text;
  if (error.empty()) return;
  const std::string prefix = nodes.at("prefix").text;
  const bool is_forbidden = error.find("NOPERM") != error.npos;
  warn(out, "Redis refuses the cache invalidation channel (pub/sub), so servers cache no denials: " + error,
       is_forbidden ? "ACL SETUSER USER +subscribe +publish &" + prefix + "*; see docs/fleet.md, \"Redis user (ACL)\""
                    : "use a Redis, and a proxy, that supports RESP3 (HELLO 3)");
}

// The fix for a refused command: the permissions that docs/fleet.md gives the user.
std::string rights_for(const protocol::JsonValue& nodes, const std::string& error, const std::string& commands) {
  const bool is_forbidden = error.find("NOPERM") != error.npos || error.find("script can't") != error.npos ||
                            error.find("ACL failure") != error.npos;
  if (!is_forbidden) return "check the keys under " + nodes.at("prefix").text + "* in Redis";
  return "ACL SETUSER USER +evalsha " + commands + " ~" + nodes.at("prefix").text +
         "*; see docs/fleet.md, \"Redis user (ACL)\"";
}

void look_at_heartbeat(const protocol::JsonValue& nodes, Findings& out) {
  constexpr double kBeatsMissed = 3;
  const std::string& error = nodes.at("heartbeat_error").text;
  if (!error.empty()) {
    bad(out,
        "Redis refuses this server's heartbeat, so other servers do not count it; while Redis is unavailable, all "
        "shares together exceed the limit: " +
            error,
        rights_for(nodes, error, "+time +hset +hdel +hgetall +pexpire"));
  } else if (const double heard = nodes.at("heard_seconds").number(); nodes.at("up").is_true && heard > kBeatsMissed) {
    warn(out, "Redis has not answered this server's heartbeat for " + protocol::wait_text(heard),
         "after 5 s, other servers do not count it; check the latency of Redis and of the network");
  }
}

// True if this explains why the servers' configs differ.
bool look_at_changes(const protocol::JsonValue& nodes, Findings& out) {
  const std::string& error = nodes.at("changes_error").text;
  if (!error.empty()) {
    bad(out, "runtime changes do not reach all servers: " + error,
        rights_for(nodes, error, "+zrevrange +zrangebyscore +zadd +zremrangebyscore"));
  }
  bool has_own = false;
  for (const protocol::JsonValue& node : nodes.at("nodes").items) {
    if (node.at("own_changes").text.empty()) continue;
    has_own = true;
    if (node.at("self").is_true && !error.empty()) continue;
    warn(
        out,
        "server " + node.at("id").text + " has runtime changes that other servers lack: " + node.at("own_changes").text,
        "it could not write them to Redis; run weir doctor on " + node.at("host").text);
  }
  return has_own || !error.empty();
}

void look_at_nodes(const protocol::JsonValue& nodes, Findings& out) {
  const std::string count = base::counted(nodes.at("nodes").items.size(), "server");
  look_at_heartbeat(nodes, out);
  const bool is_explained = look_at_changes(nodes, out);
  const bool is_known = nodes.at("up").is_true && nodes.at("heartbeat_error").text.empty();
  if (is_explained || !is_known) {
    // The other servers are unknown now, or the reason for the difference was reported.
  } else if (nodes.at("mixed").is_true) {
    warn(out, "mixed fleet: the " + count + " do not all have the same config and version",
         "normal during a rollout; weir nodes shows the config and version of each server");
  } else {
    fine(out, count + " in the fleet, all with the same config");
  }
  const double skew = std::abs(nodes.at("clock_skew_seconds").number());
  if (skew > 1) {
    warn(out, "the clocks of this machine and of Redis are " + protocol::wait_text(skew) + " apart",
         "run an NTP client on both: limits use the clock of Redis, bans and times in answers use this machine's");
  }
}

void look_at_memory(const protocol::JsonValue& redis, const std::string& who, Findings& out) {
  const std::string& eviction = redis.at("eviction").text;
  const double memory = redis.at("memory").number(), most = redis.at("memory_max").number();
  const bool evicts = !eviction.empty() && eviction != "noeviction";
  if (evicts && most > 0) {
    bad(out, who + " evicts keys when its memory is full (maxmemory-policy " + eviction + "), which resets limits",
        "CONFIG SET maxmemory-policy noeviction, or use a separate Redis for limits");
  } else if (evicts) {
    warn(out, who + " would evict keys (maxmemory-policy " + eviction + ") if maxmemory were set",
         "CONFIG SET maxmemory-policy noeviction: keys of limits expire by themselves");
  }
  if (redis.at("evicted").number() > 0) {
    warn(out, who + " has evicted " + base::counted(redis.at("evicted").text, "key") + " for lack of memory",
         "raise maxmemory: an evicted limit starts again from zero");
  }
  if (most > 0 && memory > 0.9 * most) {
    bad(out, who + " uses " + tenths(100 * memory / most) + " % of its maxmemory",
        "raise maxmemory: a full Redis refuses writes (OOM), and each rule's on_backend_error applies");
  }
}

void look_at_replicas(const protocol::JsonValue& redis, const std::string& who, Findings& out) {
  constexpr double kBehindMax = 1 << 20;
  if (redis.at("role").text == "slave") {
    bad(out, who + " is a replica, which refuses writes",
        "use the master's address, or the sentinels: redis+sentinel://a,b,c/name");
  }
  if (redis.at("replicas").number() == 0) return;
  const double behind = redis.at("behind_bytes").number(), lag = redis.at("lag_seconds").number();
  if (behind < kBehindMax && lag < 10) return;
  warn(out,
       "a replica of " + who + " is " + redis.at("behind_bytes").text + " bytes behind, and last answered " +
           protocol::wait_text(lag) + " ago",
       "check its network and disk: after a failover, the charges that it lacks are admitted again");
}

void look_at_redis(const protocol::JsonValue& redis, Findings& out) {
  const std::string who =
      redis.at("software").text.empty()
          ? "Redis at " + redis.at("address").text
          : redis.at("software").text + " " + redis.at("version").text + " at " + redis.at("address").text;
  std::string error = redis.at("error").text;
  for (const std::string& known : {std::string("Redis: "), redis.at("address").text + ": "}) {
    if (error.starts_with(known)) error.erase(0, known.size());  // `who` has it
  }
  if (error.find("NOPERM") != error.npos) {
    return warn(out, who + " refuses INFO: " + error, "grant +info to its user, to check memory and replicas");
  }
  if (!error.empty()) return warn(out, who + ": " + error, std::string(cause_of(error).second));
  look_at_memory(redis, who, out);
  look_at_replicas(redis, who, out);
  if (redis.at("saving_broken").is_true) {
    warn(out, who + " could not save its last snapshot", "see the log of Redis: often the disk is full");
  }
  const std::string_view vulnerability = known_vulnerability(redis.at("software").text, redis.at("version").text);
  if (vulnerability.empty()) {
    fine(out, who);
  } else {
    warn(out, who + " has a known vulnerability: " + std::string(vulnerability),
         "upgrade it, unless your distribution fixed it in this version");
  }
}

}  // namespace

std::string_view known_vulnerability(std::string_view software, std::string_view version) {
  struct Fixed {
    std::string_view software;
    Version from;  // the beginning of a series
    Version fixed;
  };
  // The first version of each series without CVE-2025-49844. Series that are not listed never got a fix.
  constexpr Fixed kFixed[] = {{"redis", {6, 2, 0}, {6, 2, 20}}, {"redis", {7, 2, 0}, {7, 2, 11}},
                              {"redis", {7, 4, 0}, {7, 4, 6}},  {"redis", {8, 0, 0}, {8, 0, 4}},
                              {"redis", {8, 2, 0}, {8, 2, 2}},  {"valkey", {7, 2, 0}, {7, 2, 11}},
                              {"valkey", {8, 0, 0}, {8, 0, 6}}, {"valkey", {8, 1, 0}, {8, 1, 4}}};
  const Version found = parse_version(version);
  if (found == Version{}) return {};
  Version newest{};
  for (const Fixed& one : kFixed) {
    if (one.software != software) continue;
    newest = std::max(newest, one.fixed);
    if (one.from[0] == found[0] && one.from[1] == found[1] && found >= one.fixed) return {};
  }
  if (found > newest) return {};
  return "CVE-2025-49844, scripts can break out of Lua";
}

void look_at_store(const Patient& patient, Findings& out) {
  if (patient.nodes.at("nodes").kind != protocol::JsonValue::Kind::array) return;  // counts are in memory
  if (!look_at_other_versions(patient.nodes, out)) {
    look_at_reach(patient.nodes, out);
    look_at_joining(patient.nodes, out);
  }
  look_at_channel(patient.nodes, out);
  look_at_nodes(patient.nodes, out);
  for (const protocol::JsonValue& redis : patient.nodes.at("redis").items) look_at_redis(redis, out);
}

}  // namespace weir::cli
