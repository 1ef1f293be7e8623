// Finds the master by asking sentinels one after the other, and follows their messages about a new master. See
// client.h.
//
// Sentinels are ordinary nodes. One of them stays connected, and we subscribe to its messages. Tested by
// sentinel_test.cc.
#include <algorithm>

#include "redis/client.h"

namespace weir::redis {

void Client::make_sentinels() {
  for (const base::Endpoint& endpoint : shared_.target.endpoints) {
    sentinels_.push_back(&make_node(endpoint, NodeRole::sentinel));
  }
}

void Client::begin_search() {
  is_searching_ = true;
  searched_ = sentinels_;
  search_at_ = 0;
  search_failure_ = "no sentinel has been asked yet";
  ask_next_sentinel();
}

void Client::ask_next_sentinel() {
  if (search_at_ == searched_.size()) {
    is_searching_ = false;
    return nodes_.front()->cannot_dial(FaultKind::disconnected,
                                       "no sentinel returned the address of the master: " + search_failure_);
  }
  const std::size_t index = search_at_++;
  const std::array<std::string_view, 3> words{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", shared_.target.master_name};
  searched_[index]->push({.done = {this, index}, .deadline = shared_.now + shared_.options.sentinel_timeout}, words);
}

void Client::on_sentinel(std::size_t index, const Reply& reply) {
  if (!is_searching_ || index + 1 != search_at_) return;
  const auto endpoint = reply.is_ok() ? read_master_address(*reply.value) : std::nullopt;
  if (!endpoint) {
    search_failure_ = reply.is_ok() ? base::to_string(searched_[index]->endpoint()) + ": unknown master name " +
                                          shared_.target.master_name
                                    : std::string(reply.fault->text);
    return ask_next_sentinel();
  }
  is_searching_ = false;
  const auto place = std::ranges::find(sentinels_, searched_[index]);
  std::rotate(sentinels_.begin(), place, place + 1);
  watch_sentinel(*sentinels_.front());
  Node& master = *nodes_.front();
  if (*endpoint != master.endpoint())
    report_event(Event::Kind::moved, base::to_string(*endpoint), "reported by a sentinel");
  master.dial(*endpoint);
}

// Subscribes to one sentinel, and keeps it connected.
void Client::watch_sentinel(Node& node) {
  if (watched_ == &node) return;
  if (watched_ != nullptr) {
    watched_->keep_connected(false);
    watched_->drop_channels();
  }
  watched_ = &node;
  node.subscribe(std::string(kSwitchMaster));
  node.subscribe(std::string(kPromotedSlave));
  node.keep_connected(true);
}

// The sentinel that leads a failover announces the switch only at its end, seconds after the promotion. It announces
// the promotion itself at once.
void Client::on_switch(std::string_view channel, std::string_view payload) {
  const std::string& name = shared_.target.master_name;
  const auto endpoint = channel == kPromotedSlave ? read_promotion(payload, name) : read_switch(payload, name);
  if (!endpoint) return;
  is_searching_ = false;
  report_event(Event::Kind::moved, base::to_string(*endpoint), "a sentinel announced a new master");
  nodes_.front()->move_to(*endpoint, "the master is now " + base::to_string(*endpoint));
}

}  // namespace weir::redis
