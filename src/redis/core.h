// The implementation of Client: its nodes, routing of commands, and handling of refused commands.
//
// core.cc is shared by all layouts; cluster.cc and sentinel.cc contain what is specific to them. A command without a
// known node, or one to retry shortly, is parked. One thread may use it. Tested by client_test.cc, cluster_test.cc
// and sentinel_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/client.h"
#include "redis/node.h"
#include "redis/topology.h"

namespace weir::redis {

class Core final : private NodeHost, private Receiver {
 public:
  Core(Target target, ClientOptions options);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  int add_script(std::string text);
  void subscribe(std::string channel, Client::Subscriber subscriber);
  Client::Hearing hearing() const;
  void connect();
  Sent send(const Order& order, Callback done);
  void flush(Micros now);
  int descriptor() const { return shared_.epoll.get(); }
  Micros due() const;
  void turn(Micros now);
  const Counters& counters() const { return shared_.counters; }
  std::vector<NodeState> masters() const;
  std::uint64_t owner_of(int slot) const;

 private:
  struct Parked {
    Pending entry;
    std::string command;
    Micros due;
    FaultKind why;
  };

  // NodeHost
  void on_dial_due(Node& node) override;
  void on_ready(Node& node) override;
  void on_lost(Node& node, const std::string& why) override;
  void on_push(Node& node, const resp::Value& push) override;
  void on_refused(Node& node, const Pending& entry, std::string_view command, std::string_view error) override;
  Micros hope() const override;
  // Receiver, for the client's own commands
  void on_reply(std::uint64_t tag, const Reply& reply) override;

  bool is_cluster() const { return shared_.target.layout == Layout::cluster; }
  bool is_sentinel() const { return shared_.target.layout == Layout::sentinel; }
  Node& make_node(const Endpoint& endpoint, NodeRole role);
  Node* find_node(const Endpoint& endpoint);
  Node* node_of_id(std::uint64_t id);
  Node* route(int slot);
  void handle_events();
  void tell(Event::Kind kind, const std::string& address, const std::string& text, const Node* node = nullptr) const;
  void answer(const Pending& entry, FaultKind kind, std::string_view text, bool was_sent) const;
  void reconnect_once(Node& node);
  void tend_subscriptions();
  void drop_left();

  // Parked commands: they wait for a map or for a time
  void park(const Pending& entry, std::string_view command, Micros due, FaultKind why);
  void park_without_owner(const Pending& entry, std::string_view command);
  void resend(const Pending& entry, std::string_view command);
  void turn_parked();

  // cluster.cc
  bool redirect(Node& node, const Pending& entry, std::string_view command, std::string_view error);
  bool retry(const Pending& entry, std::string_view command, FaultKind kind);
  void ask_for_refresh();
  void begin_refresh();
  Node& node_to_ask();
  void on_map(const Reply& reply);
  void refresh_failed(std::string why);
  void use_map(const ClusterMap& map);
  bool assign_slots(const ClusterMap& map, std::vector<Node*>& masters);
  void reroute();

  // sentinel.cc
  void make_sentinels();
  void begin_search();
  void ask_next_sentinel();
  void on_sentinel(std::size_t index, const Reply& reply);
  void watch_sentinel(Node& node);
  void on_switch(std::string_view channel, std::string_view payload);

  Shared shared_;
  std::uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<Node>> nodes_;  // null where a node has left
  std::vector<std::pair<std::string, Client::Subscriber>> subscribers_;
  std::vector<Parked> parked_;
  bool is_kept_ = false;  // connect() was called
  Micros reconnected_at_{INT64_MIN / 2};
  std::size_t next_any_ = 0;

  // Cluster only
  std::array<std::int16_t, kSlots> slots_{};  // index of each slot's owner in nodes_; -1 if unknown
  std::vector<Endpoint> known_;               // every endpoint that may be asked for the map
  bool has_map_ = false;
  bool has_shards_ = true;  // CLUSTER SHARDS is supported
  bool is_refreshing_ = false;
  bool has_refresh_failed_ = false;
  std::uint64_t asked_id_ = 0;
  Endpoint asked_;
  Micros refresh_at_ = kNever;
  Micros refreshed_at_{INT64_MIN / 2};
  std::string map_failure_ = "the cluster map has not been read yet";

  // Sentinel only
  std::vector<Node*> sentinels_;  // the last one to reply comes first
  std::vector<Node*> searched_;   // sentinels_ as it was when the search began
  Node* watched_ = nullptr;       // the sentinel that reports switches
  bool is_searching_ = false;
  std::size_t search_at_ = 0;
  std::string search_failure_;
};

}  // namespace weir::redis
