// The flags for the store, and the store on Redis that they describe. See serve_flags.h.
//
// An error names the flag, or the config that sets `store`. One thread. Tested by tests/server/cli.sh and fleet.sh
// there.

#include "cli/flags.h"
#include "control/config_file.h"
#include "fleet/redis_key.h"
#include "log/log.h"
#include "redis/client.h"
#include "serve/fleet_reporter.h"
#include "serve/serve_flags.h"
#include "weir/policy.h"

namespace weir::serve {
namespace {

// Reads the saved state and removes the unsynced charges from the file, since this server now syncs them. An invalid
// file is logged and rewritten. If the file cannot be written, this server drops the unsynced charges: otherwise the
// next server would charge them again.
void take_saved_state(const std::string& path, fleet::FleetStoreOptions& options) {
  if (path.empty()) return;
  auto kept = fleet::read_saved_fleet_state(path);
  if (kept) {
    options.kept = *std::move(kept);
  } else if (kept.error().code != ErrorCode::not_found) {
    log::log(log::LogLevel::warn, "cannot read the saved state; unsynced charges are unknown",
             {{"reason", kept.error().message}});
  }
  options.membership.on_rank = [path](fleet::NodeRank rank) {
    log_if_not_saved(fleet::write_saved_fleet_state(path, {.rank = rank}));
  };
  const auto written = fleet::write_saved_fleet_state(path, {.rank = options.kept.rank});
  if (!written) options.kept.charges.clear();
  log_if_not_saved(written);
}

}  // namespace

void log_if_not_saved(const Result<void>& written) {
  if (written) return;
  log::log(log::LogLevel::warn, "cannot write the saved state for the next start",
           {{"reason", written.error().message}});
}

void StoreFlags::add(CLI::App& app) {
  cli::text_flag(app, "--store", store, "URL",
                 "Where to count: memory (default), or a Redis that servers share: redis://host, rediss://host, "
                 "redis+sentinel://a,b,c/name, redis+cluster://a,b,c");
  cli::text_flag(app, "--store-prefix", prefix, "TEXT", "Prefix of all key names in Redis");
  app.add_option("--store-deadline", deadline_ms, "Maximum time that a decision waits for Redis, in milliseconds")
      ->type_name("MS")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  cli::number_flag(app, "--keys", keys, {1, 1'000'000'000}, "N",
                   "Capacity for live keys; default: 1000000, or as in the state file");
  cli::number_flag(
      app, "--memory", memory, {1, cli::kMemoryMax}, "BYTES",
      "Size of the whole table, for as many keys as fit; with --keys, the rest is for logs of sliding_log and "
      "permits in flight");
  cli::text_flag(app, "--state", state, "FILE", "State file; it survives restarts, upgrades and kill -9");
}

// If the file cannot be read, the code that needs it reports the error.
void StoreFlags::take(const std::string& config) {
  if (!store.empty() || config.empty()) return;
  const auto text = control::read_config(config);
  if (!text) return;
  if (const auto policy = parse_policy(*text, config)) {
    store = policy->store;
    store_from_ = config + ": `store`";
  }
}

Result<std::shared_ptr<fleet::FleetStore>> StoreFlags::fleet() const {
  if (store.empty() || store == "memory") return nullptr;
  if (store.find("://") == std::string::npos) {
    return fail(ErrorCode::invalid_argument,
                store_from_ + ": " + base::in_quotes(store) +
                    " is not a store; write memory, or the URL of a Redis: redis://host:6379");
  }
  auto target = base::redis::parse_url(store);
  if (!target) return fail(target.error().code, store_from_ + ": " + target.error().message);
  if (const auto files = redis::check_files(*target); !files) {
    return fail(files.error().code, store_from_ + ": " + files.error().message);
  }
  if (const auto wrong = fleet::refuse_prefix(prefix)) return fail(wrong->code, "--store-prefix: " + wrong->message);
  fleet::FleetStoreOptions options{.target = *std::move(target)};
  options.pipeline.prefix = prefix;
  options.pipeline.deadline = Micros{static_cast<std::int64_t>(deadline_ms) * 1'000};
  log_fleet_events(options);
  take_saved_state(saved_state_file(), options);
  return std::make_shared<fleet::FleetStore>(std::move(options));
}

}  // namespace weir::serve
