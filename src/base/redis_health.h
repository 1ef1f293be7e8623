// The health of a Redis server, as far as it matters to limits: what INFO reports, as numbers.
//
// Pure; any thread. Tested by redis_health_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::base {

struct RedisHealth {
  std::string address{};
  std::string error{};     // why nothing is known; all other members are empty then
  std::string software{};  // redis, valkey
  std::string version{};
  std::string role{};
  std::string eviction{};                    // maxmemory-policy
  std::uint64_t memory = 0, memory_max = 0;  // bytes; maximum 0: unlimited
  std::uint64_t evicted = 0;                 // keys, since the server started
  std::uint64_t replicas = 0;
  std::uint64_t behind = 0;       // bytes that the slowest replica has not received yet
  std::uint64_t lag_seconds = 0;  // since the replica that is silent longest last answered
  bool is_saving_broken = false;  // its last snapshot failed
  bool is_loading = false;
};

// Parses the text of INFO. Members that it does not mention stay empty.
RedisHealth read_info(std::string_view info);

}  // namespace weir::base
