// The flags for the store. See store_options.h.
#include "serve/store_options.h"

#include "cli/complain.h"
#include "control/config_file.h"
#include "fleet/redis_key.h"
#include "log/log.h"
#include "redis/tls.h"
#include "serve/fleet_desk.h"
#include "weir/policy.h"

namespace weir {
namespace {

// Reads the saved state and removes the unsynced charges from the file, since this server now syncs them. An invalid
// file is logged and rewritten. If the file cannot be written, this server drops the unsynced charges: otherwise the
// next server would charge them again.
void take_kept(const std::string& path, FleetStoreOptions& options) {
  if (path.empty()) return;
  auto kept = read_keepsake(path);
  if (kept) {
    options.kept = *std::move(kept);
  } else if (kept.error().code != ErrorCode::not_found) {
    log(LogLevel::warn, "cannot read the saved state; unsynced charges are unknown",
        {{"reason", kept.error().message}});
  }
  options.keeper.on_seat = [path](Seat seat) { log_unless(write_keepsake(path, {.seat = seat})); };
  const auto written = write_keepsake(path, {.seat = options.kept.seat});
  if (!written) options.kept.debts.clear();
  log_unless(written);
}

}  // namespace

void log_unless(const Result<void>& written) {
  if (written) return;
  log(LogLevel::warn, "cannot write the saved state for the next start", {{"reason", written.error().message}});
}

void StoreFlags::add(CLI::App& app) {
  app.add_option("--store", store,
                 "Where to count: memory (default), or a Redis that servers share: redis://host, rediss://host, "
                 "redis+sentinel://a,b,c/name, redis+cluster://a,b,c")
      ->type_name("URL");
  app.add_option("--store-prefix", prefix, "Prefix of all key names in Redis")
      ->type_name("TEXT")
      ->capture_default_str();
  app.add_option("--store-deadline", deadline_ms, "Maximum time that a decision waits for Redis, in milliseconds")
      ->type_name("MS")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--keys", keys, "Capacity for live keys; default: 1000000, or as in the state file")
      ->type_name("N")
      ->check(whole_number_to(1'000'000'000));
  app.add_option(
         "--memory", memory,
         "Size of the whole table, for as many keys as fit; with --keys, the rest is for logs of sliding_log and "
         "permits in flight")
      ->type_name("BYTES")
      ->check(whole_number_to(kMemoryMax));
  app.add_option("--state", state, "State file; it survives restarts, upgrades and kill -9")->type_name("FILE");
}

// If the file cannot be read, the code that needs it reports the error.
void StoreFlags::take(const std::string& config) {
  if (!store.empty() || config.empty()) return;
  const auto text = read_config(config);
  if (!text) return;
  if (const auto policy = parse_policy(*text, config)) {
    store = policy->store;
    store_from_ = config + ": `store`";
  }
}

Result<LimiterOptions> StoreFlags::limiter_options() const {
  LimiterOptions options;
  options.keys = keys;
  options.memory = memory;
  options.file = state;
  return options;
}

Result<std::shared_ptr<FleetStore>> StoreFlags::fleet() const {
  if (store.empty() || store == "memory") return nullptr;
  if (store.find("://") == std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                store_from_ + ": " + in_quotes(store) +
                    " is not a store; write memory, or the URL of a Redis: redis://host:6379");
  }
  auto target = redis::parse_url(store);
  if (!target) return fail(target.error().code, store_from_ + ": " + target.error().message);
  if (const auto files = redis::check_files(*target); !files) {
    return fail(files.error().code, store_from_ + ": " + files.error().message);
  }
  if (const auto wrong = refuse_prefix(prefix)) return fail(wrong->code, "--store-prefix: " + wrong->message);
  FleetStoreOptions options{.target = *std::move(target)};
  options.lane.prefix = prefix;
  options.lane.deadline = Micros{static_cast<std::int64_t>(deadline_ms) * 1'000};
  options.on_change = log_fleet_change;
  options.keeper.on_deaf = [prefix = prefix](std::string_view why) { log_deaf_fleet(prefix, why); };
  options.keeper.on_unheard = [prefix = prefix](std::string_view why) { log_unheard(prefix, why); };
  options.keeper.on_strangers = [prefix = prefix](const Strangers& strangers, bool is_barred) {
    log_strangers(prefix, strangers, is_barred);
  };
  take_kept(kept(), options);
  return std::make_shared<FleetStore>(std::move(options));
}

}  // namespace weir
