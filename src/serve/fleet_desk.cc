// Converts and logs what passes between a server and its fleet. See fleet_desk.h.
#include "serve/fleet_desk.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "log/log.h"
#include "redis/client.h"
#include "redis/fault.h"

namespace weir {
namespace {

// A heartbeat's text: `name=value` pairs, separated by blanks; names and values have no blanks.
struct Word {
  std::string_view name;
  std::string FleetNodeView::*member;
};
constexpr std::array kWords = {Word{"weir", &FleetNodeView::version}, Word{"policy", &FleetNodeView::policy},
                               Word{"rules", &FleetNodeView::rules},  Word{"change", &FleetNodeView::change},
                               Word{"host", &FleetNodeView::host},    Word{"pid", &FleetNodeView::pid},
                               Word{"own", &FleetNodeView::own}};
constexpr std::size_t kPolicyDigits = 12;
constexpr Micros kLately{5'000'000};  // a refused command is retried every second

// The permissions that docs/fleet.md gives the user for this.
constexpr std::string_view kListRights = "+zrevrange +zrangebyscore +zadd +zremrangebyscore";
constexpr std::string_view kStrangersFix =
    "stop those servers first, or give this server another --store-prefix; a killed server counts for 5 s";
constexpr std::string_view kBeatRights = "+time +hset +hdel +hgetall +pexpire";

std::string rights(std::string_view what, std::string_view prefix) {
  return "ACL SETUSER USER +evalsha " + std::string(what) + " ~" + std::string(prefix) +
         "*, on every server of a cluster; see docs/fleet.md, Redis user (ACL)";
}

std::string host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return {};
  std::string out(name);
  for (char& c : out) c = c <= ' ' || c == 0x7f ? '_' : c;
  return out;
}

std::string words_of(const FleetNodeView& node) {
  std::string out;
  for (const Word& word : kWords) {
    if ((node.*word.member).empty()) continue;
    out.append(out.empty() ? "" : " ").append(word.name).append("=").append(node.*word.member);
  }
  return out;
}

void read_words(std::string_view text, FleetNodeView& node) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    for (const Word& word : kWords) {
      const bool is_it = one.starts_with(word.name) && one.substr(word.name.size()).starts_with('=');
      if (is_it) node.*word.member = one.substr(word.name.size() + 1);
    }
  }
}

}  // namespace

void FleetDesk::speak_for(const Control& control) {
  store_.keeper().set_says([&control, host = host_name()] {
    const ControlStatus status = control.status();
    return words_of({.version = WEIR_VERSION,
                     .policy = status.hash.substr(0, kPolicyDigits),
                     .host = host,
                     .pid = std::to_string(getpid()),
                     .rules = std::to_string(status.rules),
                     .change = std::to_string(status.last_change),
                     .own = status.own_changes > 0 ? std::to_string(status.own_changes) : ""});
  });
}

FleetTells FleetDesk::tells() {
  return {.view = [this] { return view(); }, .inspect = [this] { return inspect(); }};
}

FleetView FleetDesk::view() {
  const LaneTotals::State state = store_.lanes().state();
  const LaneCounts lanes = store_.lanes().counts();
  const FleetCounts& counts = store_.counts();
  Keeper& keeper = store_.keeper();
  FleetView out{.store = redis::to_string(store_.options().target),
                .prefix = store_.options().lane.prefix,
                .is_up = !state.is_away && lanes.connects > 0 && !keeper.is_barred(),
                .has_joined = keeper.has_joined(),
                .share_of = store_.nodes(),
                .since = redis::steady_now() - std::max(state.since, keeper.began()),
                .why = state.why,
                .why_age = redis::steady_now() - state.why_at,
                .deaf_why = keeper.deaf_why(),
                .beat_why = keeper.unheard_why(),
                .strangers = to_string(keeper.strangers(), store_.options().lane.prefix),
                .is_barred = keeper.is_barred(),
                .heard = keeper.heard(),
                .changes_why = changes_why(),
                .clock_skew = keeper.clock_skew(),
                .strict = counts.strict,
                .cached = counts.cached,
                .fallback = counts.fallback,
                .calls = lanes.calls,
                .timeouts = lanes.timeouts,
                .late = lanes.late,
                .unsent = lanes.unsent,
                .breaker_openings = lanes.breaker_openings,
                .connects = lanes.connects,
                .refunds = counts.refunds,
                .failed_refunds = counts.failed_refunds,
                .unsynced_keys = store_.owed().size(),
                .synced_permits = keeper.synced_permits(),
                .dropped_permits = store_.owed().dropped_permits(),
                .shed = counts.shed};
  for (FleetNode& node : keeper.nodes()) {
    FleetNodeView& one = out.nodes.emplace_back();
    one.id = std::move(node.id);
    one.is_self = node.is_self;
    one.age = node.age;
    read_words(node.says, one);
  }
  return out;
}

std::vector<RedisView> FleetDesk::inspect() {
  std::vector<RedisView> out;
  for (RedisHealth& one : store_.inspect()) {
    out.push_back({.address = one.address.empty() ? named_addresses() : std::move(one.address),
                   .error = std::move(one.error),
                   .software = std::move(one.software),
                   .version = std::move(one.version),
                   .role = std::move(one.role),
                   .eviction = std::move(one.eviction),
                   .memory = one.memory,
                   .memory_max = one.memory_max,
                   .evicted = one.evicted,
                   .replicas = one.replicas,
                   .behind = one.behind,
                   .lag_seconds = one.lag_seconds,
                   .is_saving_broken = one.is_saving_broken,
                   .is_loading = one.is_loading});
  }
  return out;
}

// The configured addresses, for a cluster of which no server has sent its map.
std::string FleetDesk::named_addresses() const {
  std::string out;
  for (const redis::Endpoint& one : store_.options().target.endpoints) {
    out.append(out.empty() ? "" : ", ").append(redis::to_string(one));
  }
  return out;
}

void FleetDesk::warn_of_redis() {
  for (const RedisHealth& one : store_.inspect()) {
    if (one.eviction.empty() || one.eviction == "noeviction") continue;
    log(LogLevel::warn, "Redis evicts keys when its memory is full, which resets limits",
        {{"redis", one.address},
         {"maxmemory-policy", one.eviction},
         {"fix", "CONFIG SET maxmemory-policy noeviction"}});
  }
}

Error FleetDesk::noted(Error error, Refusal FleetDesk::*refusal, std::string_view what) {
  if (!redis::is_forbidden(error.message)) return error;
  std::string why = "Redis refuses to " + std::string(what) + " the shared runtime changes: " + error.message;
  error.code = ErrorCode::invalid_argument;  // not transient: an operator must fix it
  error.message = why + "; " + rights(kListRights, store_.options().lane.prefix);
  const std::lock_guard lock(mutex_);
  this->*refusal = {std::move(why), redis::steady_now()};
  return error;
}

void FleetDesk::forget(Refusal FleetDesk::*refusal) {
  const std::lock_guard lock(mutex_);
  this->*refusal = {};
}

// Another server may have written the line since; then this server does not retry, so an old refusal is ignored.
std::string FleetDesk::changes_why() const {
  const std::lock_guard lock(mutex_);
  for (const Refusal* const one : {&reading_, &writing_}) {
    if (!one->why.empty() && redis::steady_now() - one->at < kLately) return one->why;
  }
  return {};
}

Result<SharedChanges::Lines> FleetDesk::since(std::uint64_t number) {
  auto lines = store_.keeper().log().since(number);
  if (!lines) return fail(noted(std::move(lines.error()), &FleetDesk::reading_, "read"));
  forget(&FleetDesk::reading_);
  return Lines{lines->last, std::move(lines->tail), std::move(lines->lines)};
}

static_assert(SharedChanges::kLineMax <= SharedLog::kLineMax);

Result<bool> FleetDesk::append(std::uint64_t after, std::uint64_t number, const std::string& line) {
  auto done = store_.keeper().log().append(after, number, line);
  if (!done) return fail(noted(std::move(done.error()), &FleetDesk::writing_, "write"));
  forget(&FleetDesk::writing_);
  return done;
}

Result<void> FleetDesk::drop(const std::vector<std::uint64_t>& numbers) { return store_.keeper().log().drop(numbers); }

void log_fleet_change(bool is_away, std::string_view why) {
  if (is_away) {
    log(LogLevel::warn, "Redis is unavailable; each rule's on_backend_error applies", {{"error", std::string(why)}});
  } else {
    log(LogLevel::info, "Redis is available again", {{"was", std::string(why)}});
  }
}

void log_deaf_fleet(std::string_view prefix, std::string_view why) {
  if (why.empty()) {
    log(LogLevel::info, "cache invalidation works again; this server caches denials");
    return;
  }
  log(LogLevel::warn, "Redis refuses the cache invalidation channel; this server caches no denials",
      {{"error", std::string(why)},
       {"fix", "ACL SETUSER USER +subscribe +publish &" + std::string(prefix) +
                   "*, on every server of a cluster; see docs/fleet.md, Redis user (ACL)"}});
}

void log_unheard(std::string_view prefix, std::string_view why) {
  if (why.empty()) {
    log(LogLevel::info, "Redis accepts this server's heartbeat again");
    return;
  }
  const std::string fix =
      redis::is_forbidden(why) ? rights(kBeatRights, prefix) : "check the value of its key in Redis";
  log(LogLevel::error, "Redis refuses this server's heartbeat; other servers do not count it, and it does not see them",
      {{"error", std::string(why)}, {"fix", fix}});
}

void log_strangers(std::string_view prefix, const Strangers& strangers, bool is_barred) {
  if (strangers.version == 0) {
    log(LogLevel::info, "no server uses another version of the key format anymore");
    return;
  }
  const std::string reason = to_string(strangers, prefix);
  if (is_barred) {
    log(LogLevel::error, "cannot join the fleet; each rule's on_backend_error applies",
        {{"reason", reason}, {"fix", std::string(kStrangersFix)}});
  } else {
    log(LogLevel::error, "servers with another key format count separately; limits are admitted twice",
        {{"reason", reason}, {"fix", std::string(kStrangersFix)}});
  }
}

std::optional<std::string> refuse_to_join(FleetStore& store) {
  constexpr Micros kPatience{500'000};
  const Keeper& keeper = store.keeper();
  const Micros until = redis::steady_now() + kPatience;
  const auto is_known = [&] {
    return keeper.has_joined() || keeper.is_barred() || !keeper.unheard_why().empty() || store.lanes().is_away();
  };
  while (!is_known() && redis::steady_now() < until) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  if (!keeper.is_barred()) return {};
  return "cannot join the fleet on " + redis::to_string(store.options().target) + ": " +
         to_string(keeper.strangers(), store.options().lane.prefix) + "; " + std::string(kStrangersFix);
}

}  // namespace weir
