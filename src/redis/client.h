// A non-blocking Redis client for one thread. It connects to a single server, to a master behind Sentinel, or to a
// Cluster.
//
//     Client client(*parse_url("redis+cluster://10.0.0.1,10.0.0.2"), {});
//     client.send({.words = words, .slot = slot_of(key), .deadline = now + Micros{15'000}}, {&receiver, 7});
//     client.flush(now);                          // once per loop iteration: sends all pending commands together
//     ... epoll or poll: wait for client.descriptor() to be readable, until client.due() ...
//     client.turn(steady_now());                  // receiver.on_reply(7, reply)
//
// It connects on connect() or at the first command, and reconnects by itself. Each command is answered exactly once:
// by turn() or flush(), by the destructor, or by send() itself if the command cannot succeed. All times are those of
// steady_now(). One thread may use a client. Callbacks run on that thread, and may call send(). Tested by
// client_test.cc, cluster_test.cc and sentinel_test.cc.
//
// client.cc is shared by all layouts; cluster.cc and sentinel.cc contain what is specific to them. A command without a
// known node, or one to retry shortly, is parked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/redis_url.h"
#include "redis/command.h"
#include "redis/node.h"
#include "redis/topology.h"

namespace weir::redis {

class Client final : private NodeHost, private Receiver {
 public:
  explicit Client(base::redis::Target target, ClientOptions options = {});
  ~Client();  // answers all unanswered commands: disconnected

  // Loads a script on every connection before any command. The result is for Command::script.
  int add_script(std::string text);

  // Calls `subscriber` for each message that is published on a channel from now on, in a cluster on any node.
  // Resubscribes after each reconnect. Needs RESP3, which every Redis since version 6 supports.
  using Subscriber = std::function<void(std::string_view payload)>;
  void subscribe(std::string channel, Subscriber subscriber);

  // Whether every channel is subscribed now. Messages published before that, or between two connections, are missed.
  struct Subscription {
    bool is_complete = false;
    std::string_view refusal{};  // why a server last refused the subscription; valid until the next turn()
  };
  Subscription subscription() const;

  // Connects and stays connected, without waiting for a command.
  void connect();

  void send(Command command, Callback done);
  void flush(Micros now);

  int descriptor() const { return shared_.epoll.get(); }  // an epoll descriptor; readable when turn() has work
  Micros due() const;                                     // when to call turn() even if nothing is readable; or kNever
  void turn(Micros now);

  const Counters& counters() const { return shared_.counters; }
  std::vector<NodeState> masters() const;
  // The known owner of a slot, as a number that is unique to that node; 0 if unknown.
  std::uint64_t owner_of(int slot) const;

 private:
  struct Parked {
    Command entry;
    std::string bytes;
    Micros due;
    FaultKind why;
  };

  // NodeHost
  void on_dial_due(Node& node) override;
  void on_ready(Node& node) override;
  void on_lost(Node& node, const std::string& why) override;
  void on_push(Node& node, const resp::Value& push) override;
  void on_refused(Node& node, const Command& entry, std::string_view bytes, std::string_view error) override;
  Micros reroute_at() const override;
  // Receiver, for the client's own commands
  void on_reply(std::uint64_t tag, const Reply& reply) override;

  bool is_cluster() const { return shared_.target.layout == base::redis::Layout::cluster; }
  bool is_sentinel() const { return shared_.target.layout == base::redis::Layout::sentinel; }
  Node& make_node(const base::Endpoint& endpoint, NodeRole role);
  Node* find_node(const base::Endpoint& endpoint);
  Node* node_of_id(std::uint64_t id);
  Node* route(int slot);
  void handle_events();
  void report_event(Event::Kind kind, const std::string& address, const std::string& text,
                    const Node* node = nullptr) const;
  void answer(const Command& entry, FaultKind kind, std::string_view text, bool was_sent) const;
  void reconnect_once(Node& node);
  void tend_subscriptions();
  void drop_left();

  // Parked commands: they wait for a map or for a time
  void park(const Command& entry, std::string_view bytes, Micros due, FaultKind why);
  void park_without_owner(const Command& entry, std::string_view bytes);
  void resend(const Command& entry, std::string_view bytes);
  void turn_parked();

  // cluster.cc
  bool redirect(Node& node, const Command& entry, std::string_view bytes, std::string_view error);
  bool retry(const Command& entry, std::string_view bytes, FaultKind kind);
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
  bool is_kept_ = false;     // connect() was called
  bool is_running_ = false;  // in turn() or flush(), whose callbacks must not call them
  Micros reconnected_at_{INT64_MIN / 2};
  std::size_t next_any_ = 0;

  // Cluster only
  std::array<std::int16_t, kSlots> slots_{};  // index of each slot's owner in nodes_; -1 if unknown
  std::vector<base::Endpoint> known_;         // every endpoint that may be asked for the map
  bool has_map_ = false;
  bool has_shards_ = true;  // CLUSTER SHARDS is supported
  bool is_refreshing_ = false;
  bool has_refresh_failed_ = false;
  std::uint64_t asked_id_ = 0;
  base::Endpoint asked_;
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

// Checks whether all files that the address names, including password files, are usable now. Run at startup: retrying
// does not help with a file that cannot be used.
Result<void> check_files(const base::redis::Target& target);

}  // namespace weir::redis
