// The cluster's map: fetched, corrected by redirections, and refreshed. See client.h.
//
// The map is only a guess; the node that receives a command decides whether it owns the slot. Tested by
// cluster_test.cc.
#include <algorithm>

#include "redis/client.h"

namespace weir::redis {
namespace {

constexpr std::uint8_t kRedirectsMax = 5;
constexpr Micros kRetryMin{5'000};
constexpr Micros kRetryMax{25'000};
constexpr Micros kDownMin{150'000};  // between two refreshes while a master is unreachable
constexpr Micros kDownMax{250'000};
constexpr std::uint64_t kMapTag = 0;

}  // namespace

// When a command that waits for an unreachable node may be sent elsewhere.
Micros Client::reroute_at() const {
  if (!is_cluster()) return kNever;
  return is_refreshing_ ? shared_.now : std::max(refresh_at_, shared_.now);
}

// ask_for_refresh()
//
// Schedules a refresh as soon as the refresh gap allows.
void Client::ask_for_refresh() {
  refresh_at_ = std::min(refresh_at_, std::max(shared_.now, refreshed_at_ + shared_.options.refresh_gap));
}

// Returns a random connected master. If there is none, or after a failed refresh, returns a random endpoint of the
// address and of the last map.
Node& Client::node_to_ask() {
  std::vector<Node*> ready;
  for (const auto& node : nodes_) {
    if (node != nullptr && node->role() == NodeRole::master && node->is_ready()) ready.push_back(node.get());
  }
  if (!ready.empty() && !has_refresh_failed_) return *ready[shared_.dice.below(ready.size())];
  const base::Endpoint& endpoint = known_[shared_.dice.below(known_.size())];
  Node* const node = find_node(endpoint);
  return node != nullptr ? *node : make_node(endpoint, NodeRole::asked);
}

void Client::begin_refresh() {
  Node& node = node_to_ask();
  is_refreshing_ = true;
  refreshed_at_ = shared_.now;
  refresh_at_ = shared_.now + shared_.options.refresh_period;
  ++shared_.counters.refreshes;
  asked_id_ = node.id();
  asked_ = node.endpoint();
  const std::array<std::string_view, 2> words{"CLUSTER", has_shards_ ? "SHARDS" : "SLOTS"};
  node.push({.done = {this, kMapTag}, .deadline = shared_.now + shared_.options.connect_timeout, .is_pinned = true},
            words);
}

void Client::on_map(const Reply& reply) {
  is_refreshing_ = false;
  if (reply.fault != nullptr) {
    const bool is_unknown = reply.fault->kind == FaultKind::error && has_shards_ && reply.fault->was_sent;
    refresh_failed(std::string(reply.fault->text));
    if (!is_unknown) return;
    has_shards_ = false;  // Redis before version 7: use the older command at once
    refresh_at_ = shared_.now;
    return;
  }
  const auto map =
      has_shards_ ? read_shards(*reply.value, asked_, shared_.target.tls.is_on) : read_slots(*reply.value, asked_);
  if (!map) return refresh_failed(base::to_string(asked_) + ": its cluster map has no slots");
  has_refresh_failed_ = false;
  use_map(*map);
}

void Client::refresh_failed(std::string why) {
  has_refresh_failed_ = true;
  const bool is_alone = why.find("cluster support disabled") != why.npos;
  map_failure_ = "cannot read the cluster map: " + std::move(why) +
                 (is_alone ? "; this Redis is not a cluster: write redis://" : "");
  refresh_at_ = shared_.now + shared_.dice.between(shared_.options.refresh_gap, 2 * shared_.options.refresh_gap);
}

// assign_slots()
//
// Returns whether any slot changed. `masters` receives the map's masters in its order.
bool Client::assign_slots(const ClusterMap& map, std::vector<Node*>& masters) {
  std::array<std::int16_t, kSlots> slots;
  slots.fill(-1);
  for (const Shard& shard : map.shards) {
    Node* node = find_node(shard.master);
    if (node == nullptr) node = &make_node(shard.master, NodeRole::master);
    node->set_role(NodeRole::master);
    masters.push_back(node);
    const auto place = std::ranges::find(nodes_, node, [](const auto& owner) { return owner.get(); });
    for (const SlotRange& range : shard.slots) {
      std::fill(slots.begin() + range.first, slots.begin() + range.last + 1,
                static_cast<std::int16_t>(place - nodes_.begin()));
    }
  }
  const bool has_changed = slots != slots_;
  slots_ = slots;
  return has_changed;
}

void Client::use_map(const ClusterMap& map) {
  std::vector<Node*> masters;
  const bool has_changed = assign_slots(map, masters);
  known_ = shared_.target.endpoints;
  for (const Shard& shard : map.shards) {
    known_.push_back(shard.master);
    known_.insert(known_.end(), shard.replicas.begin(), shard.replicas.end());
  }
  bool is_one_down = false;
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    if (std::ranges::find(masters, node.get()) == masters.end()) {
      node->set_role(NodeRole::leaving);
      node->keep_connected(false);
    } else {
      if (is_kept_) node->keep_connected(true);
      is_one_down = is_one_down || node->is_down();
    }
  }
  has_map_ = true;
  if (is_one_down || !parked_.empty()) {
    refresh_at_ = std::min(refresh_at_, shared_.now + shared_.dice.between(kDownMin, kDownMax));
  }
  if (has_changed) report_event(Event::Kind::moved, base::to_string(asked_), "the cluster map has changed");
  reroute();
}

// Sends commands that wait for an unconnected node to the node that now owns their slot.
void Client::reroute() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i] == nullptr || nodes_[i]->is_ready()) continue;
    Queue waiting = nodes_[i]->take_backlog();
    waiting.for_each([&](const Command& entry, std::string_view bytes, bool) {
      if (entry.is_answered || entry.purpose != Purpose::command) return;
      if (entry.is_pinned) {
        nodes_[i]->push_bytes(entry, bytes, false);
      } else {
        resend(entry, bytes);
      }
    });
  }
}

// redirect()
//
// Returns false if the error is no redirection.
bool Client::redirect(Node& node, const Command& entry, std::string_view bytes, std::string_view error) {
  const auto redirection = read_redirection(error, node.endpoint());
  if (!redirection) return false;
  ++shared_.counters.redirects;
  if (entry.redirects == kRedirectsMax) {
    answer(entry, FaultKind::moved_too_often, fit_for_log(error), true);
    return true;
  }
  Command next = entry;
  ++next.redirects;
  next.slot = redirection->slot;
  Node* to = find_node(redirection->to);
  if (to == nullptr) to = &make_node(redirection->to, NodeRole::master);
  if (!redirection->is_ask) {
    to->set_role(NodeRole::master);
    const auto place = std::ranges::find(nodes_, to, [](const auto& owner) { return owner.get(); });
    slots_[static_cast<std::size_t>(redirection->slot)] = static_cast<std::int16_t>(place - nodes_.begin());
    ask_for_refresh();
  }
  to->push_bytes(next, bytes, redirection->is_ask);
  return true;
}

// retry()
//
// Retries a command after a short wait if the error is temporary. Returns false if it cannot. The deadline ends
// retrying.
bool Client::retry(const Command& entry, std::string_view bytes, FaultKind kind) {
  const bool passes = kind == FaultKind::try_again || kind == FaultKind::cluster_down || kind == FaultKind::loading ||
                      kind == FaultKind::master_down || kind == FaultKind::readonly;
  if (kind == FaultKind::try_again && !entry.is_retried) return false;
  if (!passes || parked_.size() >= shared_.options.commands_max) return false;
  if (kind != FaultKind::try_again) ask_for_refresh();
  ++shared_.counters.retries;
  Command next = entry;
  next.refusal = kind;
  next.redirects = 0;  // Redis 6 redirects to and fro while TRYAGAIN lasts
  park(next, bytes, shared_.now + shared_.dice.between(kRetryMin, kRetryMax), kind);
  return true;
}

}  // namespace weir::redis
