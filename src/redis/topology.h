// What Redis says of who serves what: maps of a cluster, redirections, a sentinel's answers, as values.
//
// All of it comes from outside: whatever does not fit is refused as a whole, or left out if the rest is good without
// it. An empty host means the one that was asked. Pure; any thread. Tested by topology_test.cc and fuzz/redis_reply.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/url.h"
#include "resp/reply.h"

namespace weir::redis {

inline constexpr std::size_t kClusterNodesMax = 2'000;

struct SlotRange {
  int first = 0;
  int last = 0;

  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

struct Shard {
  Endpoint master{};
  std::vector<Endpoint> replicas{};
  std::vector<SlotRange> slots{};
};

struct ClusterMap {
  std::vector<Shard> shards{};  // those with slots
};

// Of CLUSTER SHARDS or of CLUSTER SLOTS; nothing if it names no slot.
std::optional<ClusterMap> read_shards(const resp::Value& value, const Endpoint& asked, bool has_tls);
std::optional<ClusterMap> read_slots(const resp::Value& value, const Endpoint& asked);

struct Redirection {
  bool is_ask = false;  // only this once; else for good
  int slot = 0;
  Endpoint to{};
};
// Of `MOVED 3999 127.0.0.1:6381` or `ASK ...`; nothing if the error is another.
std::optional<Redirection> read_redirection(std::string_view error, const Endpoint& from);

// Of SENTINEL GET-MASTER-ADDR-BY-NAME; nothing if it does not know the name.
std::optional<Endpoint> read_master_address(const resp::Value& value);
// Of a message on +switch-master: where the master of that name is now.
std::optional<Endpoint> read_switch(std::string_view payload, std::string_view master_name);
// Of one on +promoted-slave: who is made the master of that name.
std::optional<Endpoint> read_promotion(std::string_view payload, std::string_view master_name);

inline constexpr std::string_view kSwitchMaster = "+switch-master";
inline constexpr std::string_view kPromotedSlave = "+promoted-slave";

}  // namespace weir::redis
