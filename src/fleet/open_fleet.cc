// Builds a fleet's store from the options of an embedder, and reports to its log. See weir/fleet.h.
//
// All input from outside is bounded here; the store trusts its options. Tested by tests/fleet_embed_test.cc.

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "base/redis_url.h"
#include "fleet/fleet_store.h"
#include "fleet/redis_key.h"
#include "redis/client.h"
#include "weir/fleet.h"

namespace weir {
namespace {

constexpr std::size_t kSaysMax = 200;
constexpr std::size_t kRememberedMax = std::size_t{1} << 24;
constexpr Micros kDeadlineMin{1'000}, kDeadlineMax{60'000'000};
constexpr Micros kLookAgain{1'000};

std::optional<Error> refuse_options(const FleetOptions& options) {
  if (auto wrong = fleet::refuse_prefix(options.prefix)) return wrong;
  if (options.deadline < kDeadlineMin || options.deadline > kDeadlineMax) {
    return Error{ErrorCode::out_of_range,
                 "the deadline must be 1 ms to 60 s, not " + std::to_string(options.deadline.count()) + " us"};
  }
  if (options.remembered_keys > kRememberedMax) {
    return Error{ErrorCode::out_of_range, "remembered_keys must be at most " + std::to_string(kRememberedMax) +
                                              ", not " + std::to_string(options.remembered_keys)};
  }
  if (options.label.size() > kSaysMax) {
    return Error{ErrorCode::out_of_range, "`label` must have at most " + std::to_string(kSaysMax) + " bytes, not " +
                                              std::to_string(options.label.size())};
  }
  return {};
}

std::string in_words(const redis::Event& event) {
  const std::string redis = "Redis at " + event.address;
  if (event.kind == redis::Event::Kind::connected) return redis + ": connected";
  const char* const what = event.kind == redis::Event::Kind::lost ? ": no connection" : ": moved";
  return redis + what + (event.text.empty() ? "" : ": " + event.text);
}

std::string deaf_in_words(const std::string& prefix, std::string_view why) {
  if (why.empty()) return "cache invalidation works again: this node caches denials";
  return "Redis refuses the cache invalidation channel, so this node caches no denials: " + std::string(why) +
         "; its user needs +subscribe +publish &" + prefix + "*";
}

fleet::FleetStoreOptions store_options(FleetOptions options, base::redis::Target target) {
  fleet::FleetStoreOptions out{.target = std::move(target), .memory_keys = options.remembered_keys};
  out.pipeline.prefix = std::move(options.prefix);
  out.pipeline.deadline = options.deadline;
  if (!options.label.empty()) out.membership.describe = [label = std::move(options.label)] { return label; };
  if (options.log) {
    out.on_invalidation_refused = [log = options.log, prefix = out.pipeline.prefix](std::string_view why) {
      log(deaf_in_words(prefix, why));
    };
    out.membership.on_refused = [log = options.log](std::string_view why) {
      log(why.empty() ? "Redis accepts this node's heartbeat again"
                      : "Redis refuses this node's heartbeat, so the other nodes do not see it: " + std::string(why) +
                            "; its user needs +time +hset +hdel +hgetall +pexpire");
    };
    out.membership.on_other_version = [log = options.log, prefix = out.pipeline.prefix](
                                          const fleet::OtherVersion& other, bool is_barred) {
      if (other.version == 0) return log("no server uses another version of the key format anymore");
      log(fleet::to_string(other, prefix) + (is_barred
                                                 ? ": this node does not join them, and decides without Redis"
                                                 : ": both groups count separately, so limits admit twice as much"));
    };
    out.pipeline.client.on_event = [log = std::move(options.log)](const redis::Event& event) { log(in_words(event)); };
  }
  return out;
}

}  // namespace

Result<Fleet> open_fleet(FleetOptions options) noexcept {
  try {
    if (auto wrong = refuse_options(options)) return fail(*std::move(wrong));
    auto target = base::redis::parse_url(options.url);
    if (!target) return fail(std::move(target.error()));
    if (auto files = redis::check_files(*target); !files) return fail(std::move(files.error()));
    return Fleet(std::make_shared<fleet::FleetStore>(store_options(std::move(options), *std::move(target))));
  } catch (const std::exception&) {
    return fail(ErrorCode::exhausted, "out of memory or threads");
  }
}

std::shared_ptr<store::Store> Fleet::store() const { return store_; }

bool Fleet::is_strict() const noexcept { return store_->background().is_strict(); }

bool Fleet::wait_until_strict(Micros most) const noexcept {
  const Micros until = redis::steady_now() + most;
  while (!is_strict()) {
    if (redis::steady_now() >= until) return false;
    std::this_thread::sleep_for(std::min(kLookAgain, most));
  }
  return true;
}

FleetStats Fleet::stats() const noexcept {
  const base::FleetCounts& counts = store_->counts();
  return {.strict = counts.strict.get(),
          .cached = counts.cached.get(),
          .fallback = counts.fallback.get(),
          .refunds = counts.refunds.get(),
          .failed_refunds = counts.failed_refunds.get(),
          .synced_permits = store_->write_backs().written()};
}

std::vector<Fleet::Node> Fleet::nodes() const {
  std::vector<Node> nodes;
  for (fleet::FleetNode& node : store_->background().membership().nodes()) {
    nodes.push_back({std::move(node.id), std::move(node.description), node.age, node.is_self});
  }
  return nodes;
}

}  // namespace weir
