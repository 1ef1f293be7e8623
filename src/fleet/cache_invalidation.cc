// Publishes and receives invalidations. See cache_invalidation.h.
#include "fleet/cache_invalidation.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "fleet/redis_key.h"

namespace weir::fleet {
namespace {

constexpr Micros kPublishTimeout{500'000};     // for an answer
constexpr std::size_t kNamesMax = 10'000;      // beyond it, all denials are invalidated
constexpr std::size_t kMessageMax = 64 << 10;  // bytes of names in one message
constexpr Micros kRestAfterFailure{100'000};
constexpr Micros kRestAfterRefusal{1'000'000};
constexpr std::string_view kAllNames = "*";

}  // namespace

void CacheInvalidation::begin(ScriptPipeline& pipeline) {
  pipeline_ = &pipeline;
  channel_ = own_key(pipeline.options().prefix, "void");
  memory_.set_caching(false);
  pipeline.client().subscribe(channel_, [this](std::string_view message) { take(message); });
}

void CacheInvalidation::turn(Micros now) {
  check_channel();
  if (has_stale_ && now >= send_at_) send(now);
}

// After a new subscription, an empty message finds out whether Redis accepts messages.
void CacheInvalidation::check_channel() {
  const redis::Client::Subscription subscription = pipeline_->client().subscription();
  const bool was_subscribed = std::exchange(is_subscribed_, subscription.is_complete);
  if (!is_subscribed_) can_publish_ = false;
  if (is_subscribed_ && !was_subscribed) has_stale_ = true;
  memory_.set_caching(is_subscribed_ && can_publish_);
  const std::string_view why = subscription.refusal.empty() ? std::string_view(publish_refusal_) : subscription.refusal;
  {
    const base::MutexLock lock(mutex_);
    if (why == refusal_) return;
    refusal_ = why;
  }
  if (on_refused_) on_refused_(why);
}

std::string CacheInvalidation::refusal() const {
  const base::MutexLock lock(mutex_);
  return refusal_;
}

// The names of a lost message are no longer known.
void CacheInvalidation::on_reply(std::uint64_t /*tag*/, const redis::Reply& reply) {
  const bool is_refused = !reply.is_ok() && reply.fault->kind == redis::FaultKind::noperm;
  if (reply.is_ok() || is_refused) can_publish_ = !is_refused;
  if (reply.is_ok()) return publish_refusal_.clear();
  if (is_refused) publish_refusal_ = "PUBLISH: " + std::string(reply.fault->text);
  send_at_ = redis::steady_now() + (is_refused ? kRestAfterRefusal : kRestAfterFailure);
  const base::MutexLock lock(mutex_);
  stale_ = {.is_all = true};
  has_stale_ = true;
}

void CacheInvalidation::publish(std::string_view name) {
  memory_.drop(memory_.mark_of(name));
  const base::MutexLock lock(mutex_);
  if (stale_.is_all) return;
  if (stale_.names.size() == kNamesMax) {
    stale_ = {.is_all = true};
  } else {
    stale_.names.emplace_back(name);
  }
  has_stale_ = true;
}

void CacheInvalidation::send(Micros now) {
  Stale stale;
  {
    const base::MutexLock lock(mutex_);
    std::swap(stale, stale_);
    has_stale_ = false;
  }
  std::string message;
  const auto flush = [&] {
    const std::array<std::string_view, 3> words = {"PUBLISH", channel_, message};
    pipeline_->client().send({.words = words, .deadline = now + kPublishTimeout}, {this, 0});
    message.clear();
  };
  if (stale.is_all) {
    message = kAllNames;
    return flush();
  }
  for (const std::string& name : stale.names) {
    base::append_sized(message, name);
    if (message.size() >= kMessageMax) flush();
  }
  if (!message.empty() || stale.names.empty()) flush();
}

void CacheInvalidation::take(std::string_view message) {
  if (message == kAllNames) return memory_.drop_all();
  while (!message.empty()) {
    std::size_t size = 0;
    const auto read = std::from_chars(message.data(), message.data() + message.size(), size);
    message.remove_prefix(static_cast<std::size_t>(read.ptr - message.data()));
    if (read.ec != std::errc{} || message.empty() || message.front() != ':' || size > message.size() - 1) {
      return memory_.drop_all();  // not our message: dropping everything is safe
    }
    memory_.drop(memory_.mark_of(message.substr(1, size)));
    message.remove_prefix(1 + size);
  }
}

}  // namespace weir::fleet
