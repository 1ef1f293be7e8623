// Converts and logs what passes between a server and its fleet. See fleet_reporter.h.
#include "serve/fleet_reporter.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "log/log.h"
#include "redis/client.h"
#include "redis/fault.h"

namespace weir::serve {
namespace {

// A heartbeat's text: `name=value` pairs, separated by blanks; names and values have no blanks.
struct Word {
  std::string_view name;
  std::string server::observe::FleetNodeView::*member;
};
constexpr std::array kWords = {
    Word{"weir", &server::observe::FleetNodeView::version}, Word{"policy", &server::observe::FleetNodeView::policy},
    Word{"rules", &server::observe::FleetNodeView::rules},  Word{"change", &server::observe::FleetNodeView::change},
    Word{"host", &server::observe::FleetNodeView::host},    Word{"pid", &server::observe::FleetNodeView::pid},
    Word{"own", &server::observe::FleetNodeView::own}};
constexpr std::size_t kPolicyDigits = 12;
constexpr Micros kLately{5'000'000};  // a refused command is retried every second

// The permissions that docs/fleet.md gives the user for this.
constexpr std::string_view kListRights = "+zrevrange +zrangebyscore +zadd +zremrangebyscore";
constexpr std::string_view kOtherVersionFix =
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

std::string words_of(const server::observe::FleetNodeView& node) {
  std::string out;
  for (const Word& word : kWords) {
    if ((node.*word.member).empty()) continue;
    out.append(out.empty() ? "" : " ").append(word.name).append("=").append(node.*word.member);
  }
  return out;
}

void read_words(std::string_view text, server::observe::FleetNodeView& node) {
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    for (const Word& word : kWords) {
      const bool has_name = one.starts_with(word.name) && one.substr(word.name.size()).starts_with('=');
      if (has_name) node.*word.member = one.substr(word.name.size() + 1);
    }
  }
}

void log_fleet_change(bool is_down, std::string_view why) {
  if (is_down) {
    log::log(log::LogLevel::warn, "Redis is unavailable; each rule's on_backend_error applies",
             {{"error", std::string(why)}});
  } else {
    log::log(log::LogLevel::info, "Redis is available again", {{"was", std::string(why)}});
  }
}

void log_refused_channel(std::string_view prefix, std::string_view why) {
  if (why.empty()) {
    log::log(log::LogLevel::info, "cache invalidation works again; this server caches denials");
    return;
  }
  log::log(log::LogLevel::warn, "Redis refuses the cache invalidation channel; this server caches no denials",
           {{"error", std::string(why)},
            {"fix", "ACL SETUSER USER +subscribe +publish &" + std::string(prefix) +
                        "*, on every server of a cluster; see docs/fleet.md, Redis user (ACL)"}});
}

void log_refused_heartbeat(std::string_view prefix, std::string_view why) {
  if (why.empty()) {
    log::log(log::LogLevel::info, "Redis accepts this server's heartbeat again");
    return;
  }
  const std::string fix =
      redis::is_forbidden(why) ? rights(kBeatRights, prefix) : "check the value of its key in Redis";
  log::log(log::LogLevel::error,
           "Redis refuses this server's heartbeat; other servers do not count it, and it does not see them",
           {{"error", std::string(why)}, {"fix", fix}});
}

void log_other_version(std::string_view prefix, const fleet::OtherVersion& other, bool is_barred) {
  if (other.version == 0) {
    log::log(log::LogLevel::info, "no server uses another version of the key format anymore");
    return;
  }
  const std::string reason = fleet::to_string(other, prefix);
  if (is_barred) {
    log::log(log::LogLevel::error, "cannot join the fleet; each rule's on_backend_error applies",
             {{"reason", reason}, {"fix", std::string(kOtherVersionFix)}});
  } else {
    log::log(log::LogLevel::error, "servers with another key format count separately; limits admit twice as much",
             {{"reason", reason}, {"fix", std::string(kOtherVersionFix)}});
  }
}

}  // namespace

void FleetReporter::report_rules_of(const control::Control& control) {
  store_.background().membership().set_description([&control, host = host_name()] {
    const control::ControlStatus status = control.status();
    return words_of({.version = WEIR_VERSION,
                     .policy = status.hash.substr(0, kPolicyDigits),
                     .host = host,
                     .pid = std::to_string(getpid()),
                     .rules = std::to_string(status.rules),
                     .change = std::to_string(status.last_change),
                     .own = status.own_changes > 0 ? std::to_string(status.own_changes) : ""});
  });
}

server::observe::FleetReports FleetReporter::reports() {
  return {.view = [this] { return view(); }, .inspect = [this] { return inspect(); }};
}

server::observe::FleetView FleetReporter::view() {
  const fleet::PipelineTotals::State state = store_.totals().state();
  const base::PipelineCounts pipelines = store_.totals().counts();
  const fleet::Membership& membership = store_.background().membership();
  server::observe::FleetView out{
      .store = base::redis::to_string(store_.options().target),
      .prefix = store_.options().pipeline.prefix,
      .is_up = !state.is_down && pipelines.connects > 0 && !membership.is_barred(),
      .has_joined = membership.has_joined(),
      .share_of = store_.nodes(),
      .since = redis::steady_now() - std::max(state.since, membership.began()),
      .last_error = state.why,
      .last_error_age = redis::steady_now() - state.why_at,
      .channel_error = store_.background().invalidation().refusal(),
      .heartbeat_error = membership.refusal(),
      .other_version = fleet::to_string(membership.other_version(), store_.options().pipeline.prefix),
      .is_barred = membership.is_barred(),
      .heard = membership.heard(),
      .changes_error = changes_error(),
      .clock_skew = membership.clock_skew(),
      .counts = store_.counts(),
      .pipelines = pipelines,
      .unsynced_keys = store_.unsynced_charges().size(),
      .synced_permits = store_.write_backs().written(),
      .dropped_permits = store_.unsynced_charges().dropped_permits()};
  for (fleet::FleetNode& node : membership.nodes()) {
    server::observe::FleetNodeView& one = out.nodes.emplace_back();
    one.id = std::move(node.id);
    one.is_self = node.is_self;
    one.age = node.age;
    read_words(node.description, one);
  }
  return out;
}

std::vector<base::RedisHealth> FleetReporter::inspect() {
  std::vector<base::RedisHealth> out = store_.inspect();
  for (base::RedisHealth& one : out) {
    if (one.address.empty()) one.address = named_addresses();
  }
  return out;
}

// The configured addresses, for a cluster of which no server has sent its map.
std::string FleetReporter::named_addresses() const {
  std::string out;
  for (const base::Endpoint& one : store_.options().target.endpoints) {
    out.append(out.empty() ? "" : ", ").append(base::to_string(one));
  }
  return out;
}

void FleetReporter::warn_of_redis() {
  for (const base::RedisHealth& one : store_.inspect()) {
    if (one.eviction.empty() || one.eviction == "noeviction") continue;
    log::log(log::LogLevel::warn, "Redis evicts keys when its memory is full, which resets limits",
             {{"redis", one.address},
              {"maxmemory-policy", one.eviction},
              {"fix", "CONFIG SET maxmemory-policy noeviction"}});
  }
}

Error FleetReporter::noted_refusal(Error error, Refusal FleetReporter::*refusal, std::string_view what) {
  if (!redis::is_forbidden(error.message)) return error;
  std::string why = "Redis refuses to " + std::string(what) + " the shared runtime changes: " + error.message;
  error.code = ErrorCode::invalid_argument;  // not transient: an operator must fix it
  error.message = why + "; " + rights(kListRights, store_.options().pipeline.prefix);
  const base::MutexLock lock(mutex_);
  this->*refusal = {std::move(why), redis::steady_now()};
  return error;
}

void FleetReporter::clear(Refusal FleetReporter::*refusal) {
  const base::MutexLock lock(mutex_);
  this->*refusal = {};
}

// Another server may have written the line since; then this server does not retry, so an old refusal is ignored.
std::string FleetReporter::changes_error() const {
  const base::MutexLock lock(mutex_);
  for (const Refusal* const one : {&reading_, &writing_}) {
    if (!one->why.empty() && redis::steady_now() - one->at < kLately) return one->why;
  }
  return {};
}

Result<control::SharedChanges::Lines> FleetReporter::since(std::uint64_t number) {
  auto lines = store_.background().log().since(number);
  if (!lines) return fail(noted_refusal(std::move(lines.error()), &FleetReporter::reading_, "read"));
  clear(&FleetReporter::reading_);
  return Lines{lines->last, std::move(lines->tail), std::move(lines->lines)};
}

static_assert(control::SharedChanges::kLineMax <= fleet::SharedLog::kLineMax);

Result<bool> FleetReporter::append(std::uint64_t after, std::uint64_t number, const std::string& line) {
  auto done = store_.background().log().append(after, number, line);
  if (!done) return fail(noted_refusal(std::move(done.error()), &FleetReporter::writing_, "write"));
  clear(&FleetReporter::writing_);
  return done;
}

Result<void> FleetReporter::drop(const std::vector<std::uint64_t>& numbers) {
  return store_.background().log().drop(numbers);
}

void log_fleet_events(fleet::FleetStoreOptions& options) {
  const std::string& prefix = options.pipeline.prefix;
  options.on_change = log_fleet_change;
  options.on_invalidation_refused = [prefix](std::string_view why) { log_refused_channel(prefix, why); };
  options.membership.on_refused = [prefix](std::string_view why) { log_refused_heartbeat(prefix, why); };
  options.membership.on_other_version = [prefix](const fleet::OtherVersion& other, bool is_barred) {
    log_other_version(prefix, other, is_barred);
  };
}

std::optional<std::string> refuse_to_join(fleet::FleetStore& store) {
  constexpr Micros kWaitMax{500'000};
  const fleet::Membership& membership = store.background().membership();
  const Micros until = redis::steady_now() + kWaitMax;
  const auto is_known = [&] {
    return membership.has_joined() || membership.is_barred() || !membership.refusal().empty() ||
           store.totals().is_down();
  };
  while (!is_known() && redis::steady_now() < until) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  if (!membership.is_barred()) return {};
  return "cannot join the fleet on " + base::redis::to_string(store.options().target) + ": " +
         fleet::to_string(membership.other_version(), store.options().pipeline.prefix) + "; " +
         std::string(kOtherVersionFix);
}

}  // namespace weir::serve
