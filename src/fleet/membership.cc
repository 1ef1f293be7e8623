// Sends heartbeats, and evaluates the replies. See membership.h.
#include "fleet/membership.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "fleet/redis_key.h"
#include "fleet/redis_script.h"

namespace weir::fleet {
namespace {

constexpr std::uint64_t kBeatTag = 1, kOtherVersionTag = 2;  // kOtherVersionTag + place in kOtherVersions
// Neighbours of this version of the key format. An older server cannot know of this version, so this server looks
// both ways.
constexpr std::array<char, 2> kOtherVersions = {kRedisVersion - 1, kRedisVersion + 1};
constexpr Micros kHeartbeatTimeout{500'000};  // for an answer
constexpr Micros kBeatSoon{100'000};          // between heartbeats while other nodes wait for this one's report
constexpr std::string_view kSynced = "sync=1 ", kUnsynced = "sync=0 ";

// Refusals of the command itself. A server that is down or unwell is reported elsewhere.
bool is_refusal(redis::FaultKind kind) {
  using enum redis::FaultKind;
  return kind == noperm || kind == wrong_type || kind == error;
}

}  // namespace

std::string to_string(const OtherVersion& other, std::string_view prefix) {
  if (other.version == 0) return {};
  return base::counted(other.nodes, "server") + " with the prefix " + std::string(prefix) +
         (other.nodes == 1 ? " uses" : " use") + " version " + other.version +
         " of the key format, and this server uses version " + kRedisVersion;
}

Membership::Membership(MembershipOptions options, FallbackStore& fallback, Handover& handover,
                       std::function<bool()> is_synced)
    : options_(std::move(options)), fallback_(fallback), handover_(handover), is_synced_(std::move(is_synced)) {
  describe_ = options_.describe;
}

void Membership::begin(ScriptPipeline& pipeline) {
  pipeline_ = &pipeline;
  prefix_ = pipeline.options().prefix;
  hash_ = own_key(prefix_, "nodes");
  script_ = pipeline.client().add_script(std::string(heartbeat_script()));
}

void Membership::turn(Micros now) {
  if (now < beat_at_) return;
  look_for_other_versions(now);
  if (has_joined()) beat(now, false);
}

Micros Membership::due() {
  const bool is_joining = !has_joined() && !is_barred() && !is_beat_refused_;
  const bool is_soon = is_joining || handover_.is_on() || handover_.is_new(beat_sent_at_);
  if (is_soon && !is_barred()) beat_at_ = std::min(beat_at_, beat_sent_at_ + kBeatSoon);
  return beat_at_;
}

void Membership::on_reconnect(Micros now) {
  held_ = nodes();
  held_at_ = now;
  held_until_ = now + options_.believed;
}

void Membership::beat(Micros now, bool is_leaving) {
  beat_at_ = now + options_.beat;
  beat_sent_at_ = now;
  beat_sent_ = wall_->now();
  std::string description;
  if (!is_leaving) {
    const base::MutexLock lock(describe_mutex_);
    description = handover_.reports_synced(is_synced_(), now) ? kSynced : kUnsynced;
    description += describe_ ? describe_() : "-";
  }
  const std::string believed = std::to_string(options_.believed.count() / 1'000);
  const std::array<std::string_view, 5> words = {"1", hash_, options_.id, description, believed};
  pipeline_->client().send(
      {.words = words, .script = script_, .slot = redis::slot_of(hash_), .deadline = now + kHeartbeatTimeout},
      is_leaving ? redis::Callback{} : redis::Callback{this, kBeatTag});
}

// look_for_other_versions()
//
// The heartbeats of other versions have another key. A hash of heartbeats expires when no server has renewed it for
// as long as a heartbeat is valid. So every node in it is alive, or was until a few seconds ago. A node that has not
// joined sends its first heartbeat when there are none.
void Membership::look_for_other_versions(Micros now) {
  beat_at_ = now + options_.beat;
  beat_sent_at_ = now;
  if (looks_ > 0) return;
  looks_ = kOtherVersions.size();
  has_look_failed_ = false;
  for (std::size_t place = 0; place < kOtherVersions.size(); ++place) {
    const std::string hash = own_key(prefix_, "nodes", kOtherVersions[place]);
    const std::array<std::string_view, 2> words = {"HGETALL", hash};
    pipeline_->client().send({.words = words, .slot = redis::slot_of(hash), .deadline = now + kHeartbeatTimeout},
                             {this, kOtherVersionTag + place});
  }
}

void Membership::on_other_nodes(std::size_t place, const redis::Reply& reply) {
  --looks_;
  if (!reply.is_ok() && !is_refusal(reply.fault->kind)) has_look_failed_ = true;
  found_[place] =
      reply.is_ok() && reply.value != nullptr ? static_cast<std::uint32_t>(reply.value->items.size() / 2) : 0;
  if (looks_ > 0 || has_look_failed_) return;
  OtherVersion other;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (found_[i] > 0) other = {.version = kOtherVersions[i], .nodes = found_[i]};
  }
  set_other_version(other);
  if (!has_joined() && !is_barred()) beat(redis::steady_now(), false);
}

// A barred node takes its part of each limit, as if it were one more of the other nodes.
void Membership::set_other_version(const OtherVersion& other) {
  const bool is_barred = other.version != 0 && !has_joined();
  if (is_barred) {
    if (!is_barred_.exchange(true)) handover_.begin();
    set_rank({.rank = other.nodes, .nodes = other.nodes + 1});
  } else {
    is_barred_.store(false);
  }
  {
    const base::MutexLock lock(mutex_);
    if (other == other_version_) return;
    other_version_ = other;
  }
  if (options_.on_other_version) options_.on_other_version(other, is_barred);
}

OtherVersion Membership::other_version() const {
  const base::MutexLock lock(mutex_);
  return other_version_;
}

std::string Membership::refusal() const {
  const base::MutexLock lock(mutex_);
  return refusal_;
}

void Membership::set_rank(NodeRank rank) {
  if (rank == fallback_.rank()) return;
  fallback_.set_rank(rank);
  if (options_.on_rank) options_.on_rank(rank);
}

void Membership::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  tag == kBeatTag ? on_beat(reply) : on_other_nodes(tag - kOtherVersionTag, reply);
}

void Membership::on_beat(const redis::Reply& reply) {
  is_answered_ = reply.is_ok();
  if (is_answered_ && reply.value != nullptr) read_nodes(reply.value->items);
  if (!is_answered_ && !is_refusal(reply.fault->kind)) return;
  is_beat_refused_ = !is_answered_;
  const std::string why = is_answered_ ? "" : std::string(reply.fault->text);
  {
    const base::MutexLock lock(mutex_);
    if (why == refusal_) return;
    refusal_ = why;
  }
  if (options_.on_refused) options_.on_refused(why);
}

// {now, id, age, description, id, age, description, ...}
void Membership::read_nodes(const std::vector<resp::Value>& items) {
  std::vector<FleetNode> nodes;
  for (std::size_t i = 1; i + 2 < items.size(); i += 3) {
    FleetNode& node = nodes.emplace_back(FleetNode{.id = items[i].text, .description = items[i + 2].text});
    node.age = Micros{base::to_number<std::int64_t>(items[i + 1].text).value_or(0) * 1'000};
    node.is_self = node.id == options_.id;
    node.is_synced = !node.description.starts_with(kUnsynced);
    if (node.description.starts_with(kSynced) || !node.is_synced) node.description.erase(0, kSynced.size());
  }
  if (!items.empty()) {
    const Micros middle = (beat_sent_ + wall_->now()) / 2;
    clock_skew_us_.store(middle.count() - items[0].integer * 1'000, std::memory_order_relaxed);
    redis_ms_ = items[0].integer;
    ++beats_;
  }
  add_held(nodes, redis::steady_now());
  others_.clear();
  unsynced_nodes_ = 0;
  for (const FleetNode& node : nodes) {
    if (node.is_self) continue;
    others_.push_back({redis_ms_ - node.age.count() / 1'000, node.is_synced, std::hash<std::string>{}(node.id)});
    unsynced_nodes_ += node.is_synced ? 0 : 1;
  }
  std::ranges::sort(nodes, {}, &FleetNode::id);
  const auto self = std::ranges::find(nodes, true, &FleetNode::is_self);
  if (self == nodes.end()) return;
  const NodeRank rank{.rank = static_cast<std::uint32_t>(self - nodes.begin()),
                      .nodes = static_cast<std::uint32_t>(nodes.size())};
  {
    const base::MutexLock lock(mutex_);
    nodes_ = std::move(nodes);
    heard_at_ = redis::steady_now();
  }
  set_rank(rank);
  handover_.meet(others_, redis_ms_, options_.believed, redis::steady_now());
  has_joined_.store(true, std::memory_order_release);  // the last: `weir serve` accepts requests now
}

void Membership::set_description(std::function<std::string()> describe) {
  const base::MutexLock lock(describe_mutex_);
  describe_ = std::move(describe);
}

void Membership::add_held(std::vector<FleetNode>& nodes, Micros now) const {
  if (now >= held_until_) return;
  for (const FleetNode& known : held_) {
    if (std::ranges::find(nodes, known.id, &FleetNode::id) != nodes.end()) continue;
    nodes.push_back(known);
    nodes.back().age += now - held_at_;
  }
}

std::vector<FleetNode> Membership::nodes() const {
  const base::MutexLock lock(mutex_);
  std::vector<FleetNode> nodes = nodes_;
  for (FleetNode& node : nodes) node.age += redis::steady_now() - heard_at_;
  return nodes;
}

Micros Membership::heard() const {
  const base::MutexLock lock(mutex_);
  return redis::steady_now() - heard_at_;
}

}  // namespace weir::fleet
