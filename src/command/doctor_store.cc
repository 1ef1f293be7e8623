// One function for each aspect of Redis. See doctor_store.h.
#include "command/doctor_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

namespace weir {
namespace {

using Level = Finding::Level;
using Version = std::array<int, 3>;

constexpr double kLately = 60;  // seconds

void say(std::vector<Finding>& out, Level level, std::string what, std::string advice = {}) {
  out.push_back({level, std::move(what), std::move(advice)});
}

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

std::string tenths(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// What an error from Redis means, and what to do.
std::pair<std::string_view, std::string_view> cause_of(std::string_view error) {
  constexpr std::pair<std::string_view, std::pair<std::string_view, std::string_view>> kCauses[] = {
      {"password file", {"", "it is read at each connect: mend it, and Redis is asked without a restart"}},
      {"name a file that", {"", "it is read at each connect: mend it, and Redis is asked without a restart"}},
      {"write redis", {"", "mend the address: --store, or `store` of the config; then start the server anew"}},
      {"NOPERM", {"its user may not do what limits need", "give it what docs/fleet.md, \"Redis user (ACL)\", lists"}},
      {"NOAUTH", {"it wants a password", "name one: redis://user@host?password_file=FILE"}},
      {"WRONGPASS", {"user or password are wrong", "see ACL LIST there, and the password's file here"}},
      {"OOM", {"it may use no more memory", "raise maxmemory there, or give limits a Redis of their own"}},
      {"READONLY", {"it is a replica", "name the master, or the sentinels: redis+sentinel://a,b,c/name"}},
      {"MISCONF", {"it cannot save, and takes no more writes", "see its log: most often the disk is full"}},
      {"LOADING", {"it reads its data", "wait; a smaller data set starts faster"}},
      {"CLUSTERDOWN", {"the cluster serves not all of its slots", "redis-cli --cluster check HOST:PORT"}},
      {"BUSY", {"a script holds it", "somebody else's: redis-cli SCRIPT KILL; ours take microseconds"}},
      {"refused", {"nobody listens there", "is it running, and is the address right?"}},
      {"certificate", {"its certificate is not trusted", "name the authority: ?ca=FILE"}},
  };
  for (const auto& [word, cause] : kCauses) {
    if (error.find(word) != error.npos) return cause;
  }
  return {"", "can this machine reach it? redis-cli -u URL ping"};
}

// True if this explains why Redis is not used.
bool look_at_strangers(const JsonValue& nodes, std::vector<Finding>& out) {
  const std::string& others = nodes.at("other_version").text;
  if (others.empty()) return false;
  const bool is_barred = nodes.at("barred").is_true;
  say(out, Level::failure,
      is_barred ? "this server does not join the fleet, and each rule's on_backend_error holds: " + others
                : "two fleets count apart, so limits are admitted twice: " + others,
      "stop all servers of one version, or give them another --store-prefix");
  return is_barred;
}

void look_at_reach(const JsonValue& nodes, std::vector<Finding>& out) {
  const std::string& store = nodes.at("store").text;
  const std::string& error = nodes.at("last_error").text;
  const auto [cause, advice] = cause_of(error);
  const std::string why =
      (cause.empty() ? "" : std::string(cause) + ": ") + (error.empty() ? "it does not answer" : error);
  if (!nodes.at("up").is_true) {
    return say(out, Level::failure,
               store + " has not been asked for " + tenths(nodes.at("since_seconds").number()) + " s: " + why,
               std::string(advice) + "; until then each rule's on_backend_error holds");
  }
  say(out, Level::fine, "limits are shared through " + store);
  const double age = nodes.at("last_error_age_seconds").number();
  if (error.empty() || age > kLately) return;
  say(out, Level::warning, store + " failed " + tenths(age) + " s ago: " + why,
      std::string(advice) + "; in such moments each rule's on_backend_error holds");
}

void look_at_joining(const JsonValue& nodes, std::vector<Finding>& out) {
  const bool has_said = nodes.at("joined").kind == JsonValue::Kind::boolean;
  if (!has_said || nodes.at("joined").is_true || nodes.at("share_of").number() > 1) return;
  say(out, Level::warning,
      "this server has not reached Redis since its start, so it knows of no other server and admits whole limits",
      "with --state FILE a server remembers how many there were; without it, start servers while Redis answers");
}

void look_at_channel(const JsonValue& nodes, std::vector<Finding>& out) {
  const std::string& error = nodes.at("channel_error").text;
  if (error.empty()) return;
  const std::string prefix = nodes.at("prefix").text;
  const bool is_forbidden = error.find("NOPERM") != error.npos;
  say(out, Level::warning,
      "Redis refuses the channel by which servers tell which denials are void, so none is remembered: " + error,
      is_forbidden ? "ACL SETUSER its user +subscribe +publish &" + prefix + "*: docs/fleet.md, \"Redis user (ACL)\""
                   : "RESP3 is needed: let the server, or the proxy before it, know HELLO");
}

// The fix for a refused command: the permissions that docs/fleet.md gives the user.
std::string rights_for(const JsonValue& nodes, const std::string& error, const std::string& commands) {
  const bool is_forbidden = error.find("NOPERM") != error.npos || error.find("script can't") != error.npos ||
                            error.find("ACL failure") != error.npos;
  if (!is_forbidden) return "see what lies under " + nodes.at("prefix").text + "* there";
  return "ACL SETUSER its user +evalsha " + commands + " ~" + nodes.at("prefix").text +
         "*: docs/fleet.md, \"Redis user (ACL)\"";
}

void look_at_heartbeat(const JsonValue& nodes, std::vector<Finding>& out) {
  constexpr double kBeatsMissed = 3;
  const std::string& error = nodes.at("heartbeat_error").text;
  if (!error.empty()) {
    say(out, Level::failure,
        "Redis refuses this server's heartbeat, so the others do not know of it, and while Redis is away all shares of "
        "a limit together are more than the limit: " +
            error,
        rights_for(nodes, error, "+time +hset +hdel +hgetall +pexpire"));
  } else if (const double heard = nodes.at("heard_seconds").number(); nodes.at("up").is_true && heard > kBeatsMissed) {
    say(out, Level::warning, "Redis has not answered this server's heartbeat for " + tenths(heard) + " s",
        "after 5 s the others do not count it; is Redis slow, or the way to it?");
  }
}

// True if this explains why the servers' policies differ.
bool look_at_changes(const JsonValue& nodes, std::vector<Finding>& out) {
  const std::string& error = nodes.at("changes_error").text;
  if (!error.empty()) {
    say(out, Level::failure, "changes do not reach all servers: " + error,
        rights_for(nodes, error, "+zrevrange +zrangebyscore +zadd +zremrangebyscore"));
  }
  bool has_own = false;
  for (const JsonValue& node : nodes.at("nodes").items) {
    if (node.at("own_changes").text.empty()) continue;
    has_own = true;
    if (node.at("self").is_true && !error.empty()) continue;
    say(out, Level::warning,
        "server " + node.at("id").text + " has changes that the others do not have: " + node.at("own_changes").text,
        "it could not write them to Redis: run weir doctor there, on " + node.at("host").text);
  }
  return has_own || !error.empty();
}

void look_at_nodes(const JsonValue& nodes, std::vector<Finding>& out) {
  const std::string count = std::to_string(nodes.at("nodes").items.size());
  look_at_heartbeat(nodes, out);
  const bool is_explained = look_at_changes(nodes, out);
  const bool is_known = nodes.at("up").is_true && nodes.at("heartbeat_error").text.empty();
  if (is_explained || !is_known) {
    // The other servers are unknown now, or the reason for the difference was reported.
  } else if (nodes.at("mixed").is_true) {
    say(out, Level::warning, "the " + count + " servers of the fleet do not all have the same policy and version",
        "in a rollout that passes; weir nodes shows who has which");
  } else {
    say(out, Level::fine, count + (count == "1" ? " server" : " servers") + " of the fleet, all with the same policy");
  }
  const double skew = std::abs(nodes.at("skew_seconds").number());
  if (skew > 1) {
    say(out, Level::warning, "this machine's clock and that of Redis are " + tenths(skew) + " s apart",
        "limits are counted by Redis's alone, but times in answers and bans are this one's: run an NTP client on both");
  }
}

void look_at_memory(const JsonValue& redis, const std::string& who, std::vector<Finding>& out) {
  const std::string& eviction = redis.at("eviction").text;
  const double memory = redis.at("memory").number(), most = redis.at("memory_max").number();
  const bool evicts = !eviction.empty() && eviction != "noeviction";
  if (evicts && most > 0) {
    say(out, Level::failure,
        who + " forgets keys when its memory is full (maxmemory-policy " + eviction + "): a limit would begin anew",
        "CONFIG SET maxmemory-policy noeviction, or a Redis of its own for limits");
  } else if (evicts) {
    say(out, Level::warning, who + " would forget keys (maxmemory-policy " + eviction + ") if maxmemory was set",
        "CONFIG SET maxmemory-policy noeviction: limits expire by themselves");
  }
  if (redis.at("evicted").number() > 0) {
    say(out, Level::warning, who + " has forgotten " + redis.at("evicted").text + " keys for lack of memory",
        "those of limits among them began anew: raise maxmemory");
  }
  if (most > 0 && memory > 0.9 * most) {
    say(out, Level::failure, who + " has used " + tenths(100 * memory / most) + " % of its memory",
        "at its end it refuses writes (OOM), and each rule's on_backend_error holds: raise maxmemory");
  }
}

void look_at_replicas(const JsonValue& redis, const std::string& who, std::vector<Finding>& out) {
  constexpr double kBehindMax = 1 << 20;
  if (redis.at("role").text == "slave") {
    say(out, Level::failure, who + " is a replica, which takes no writes",
        "name the master, or the sentinels: redis+sentinel://a,b,c/name");
  }
  if (redis.at("replicas").number() == 0) return;
  const double behind = redis.at("behind_bytes").number(), lag = redis.at("lag_seconds").number();
  if (behind < kBehindMax && lag < 10) return;
  say(out, Level::warning,
      "a replica of " + who + " is " + redis.at("behind_bytes").text + " bytes behind, and was last heard of " +
          redis.at("lag_seconds").text + " s ago",
      "after a failover what it has not got is let through once more: look at its network and disk");
}

void look_at_redis(const JsonValue& redis, std::vector<Finding>& out) {
  const std::string who =
      redis.at("software").text.empty()
          ? "Redis at " + redis.at("address").text
          : redis.at("software").text + " " + redis.at("version").text + " at " + redis.at("address").text;
  const std::string& error = redis.at("error").text;
  if (error.find("NOPERM") != error.npos) {
    return say(out, Level::warning, who + " does not tell how it is: " + error,
               "its user may not use INFO; with +info more could be said here");
  }
  if (!error.empty()) return say(out, Level::warning, who + ": " + error, std::string(cause_of(error).second));
  look_at_memory(redis, who, out);
  look_at_replicas(redis, who, out);
  if (redis.at("saving_broken").is_true) {
    say(out, Level::warning, who + " could not save its last snapshot", "see its log: most often the disk is full");
  }
  const std::string_view hole = known_hole(redis.at("software").text, redis.at("version").text);
  if (hole.empty()) {
    say(out, Level::fine, who);
  } else {
    say(out, Level::warning, who + " has a known hole: " + std::string(hole),
        "upgrade it, unless your distribution has mended it under the same number");
  }
}

}  // namespace

std::string_view known_hole(std::string_view software, std::string_view version) {
  struct Mended {
    std::string_view software;
    Version from;  // the beginning of a series
    Version mended;
  };
  // The first version of each series without CVE-2025-49844. Series that are not listed never got a fix.
  constexpr Mended kMended[] = {{"redis", {6, 2, 0}, {6, 2, 20}}, {"redis", {7, 2, 0}, {7, 2, 11}},
                                {"redis", {7, 4, 0}, {7, 4, 6}},  {"redis", {8, 0, 0}, {8, 0, 4}},
                                {"redis", {8, 2, 0}, {8, 2, 2}},  {"valkey", {7, 2, 0}, {7, 2, 11}},
                                {"valkey", {8, 0, 0}, {8, 0, 6}}, {"valkey", {8, 1, 0}, {8, 1, 4}}};
  const Version found = parse_version(version);
  if (found == Version{}) return {};
  Version newest{};
  for (const Mended& one : kMended) {
    if (one.software != software) continue;
    newest = std::max(newest, one.mended);
    if (one.from[0] == found[0] && one.from[1] == found[1] && found >= one.mended) return {};
  }
  if (found > newest) return {};
  return "CVE-2025-49844, scripts can break out of Lua";
}

void look_at_store(const Patient& patient, std::vector<Finding>& out) {
  if (patient.nodes.at("nodes").kind != JsonValue::Kind::array) return;  // counts are in memory
  if (!look_at_strangers(patient.nodes, out)) {
    look_at_reach(patient.nodes, out);
    look_at_joining(patient.nodes, out);
  }
  look_at_channel(patient.nodes, out);
  look_at_nodes(patient.nodes, out);
  for (const JsonValue& redis : patient.nodes.at("redis").items) look_at_redis(redis, out);
}

}  // namespace weir
