// Parses what Redis says about its topology: cluster maps, redirections, and replies of sentinels.
//
// The input is untrusted. Malformed input is refused as a whole, or left out if the rest is useful without it. An
// empty host means the server that was asked. Pure; any thread may call it. Tested by topology_test.cc and
// fuzz/redis_reply.cc.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/redis_url.h"
#include "resp/reply.h"

namespace weir::redis {

inline constexpr std::size_t kClusterNodesMax = 2'000;

struct SlotRange {
  int first = 0;
  int last = 0;

  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

struct Shard {
  base::Endpoint master{};
  std::vector<base::Endpoint> replicas{};
  std::vector<SlotRange> slots{};
};

struct ClusterMap {
  std::vector<Shard> shards{};  // only those with slots
};

// Parse the reply to CLUSTER SHARDS or CLUSTER SLOTS. Empty if malformed or without any slot.
std::optional<ClusterMap> read_shards(const resp::Value& value, const base::Endpoint& asked, bool has_tls);
std::optional<ClusterMap> read_slots(const resp::Value& value, const base::Endpoint& asked);

struct Redirection {
  bool is_ask = false;  // for this command only; otherwise permanent
  int slot = 0;
  base::Endpoint to{};
};
// Parses `MOVED 3999 127.0.0.1:6381` or `ASK ...`. Empty for any other error.
std::optional<Redirection> read_redirection(std::string_view error, const base::Endpoint& from);

// Parses the reply to SENTINEL GET-MASTER-ADDR-BY-NAME. Empty if the sentinel does not know the name.
std::optional<base::Endpoint> read_master_address(const resp::Value& value);
// Parses a +switch-master message: the new address of the master of that name.
std::optional<base::Endpoint> read_switch(std::string_view payload, std::string_view master_name);
// Parses a +promoted-slave message: the replica that becomes the master of that name.
std::optional<base::Endpoint> read_promotion(std::string_view payload, std::string_view master_name);

inline constexpr std::string_view kSwitchMaster = "+switch-master";
inline constexpr std::string_view kPromotedSlave = "+promoted-slave";

}  // namespace weir::redis
