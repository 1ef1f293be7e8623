// How a server of Redis is, as far as it matters to limits: what INFO says, in numbers.
//
// Pure; any thread. Tested by redis_health_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

struct RedisHealth {
  std::string address{};
  std::string error{};     // why nothing is known; the rest is empty then
  std::string software{};  // redis, valkey
  std::string version{};
  std::string role{};
  std::string eviction{};                    // maxmemory-policy
  std::uint64_t memory = 0, memory_max = 0;  // bytes; 0: no bound
  std::uint64_t evicted = 0;                 // keys, since its start
  std::uint64_t replicas = 0;
  std::uint64_t behind = 0;       // bytes that the slowest replica has not got yet
  std::uint64_t lag_seconds = 0;  // since the one that was silent longest was heard of
  bool is_saving_broken = false;  // its last snapshot failed
  bool is_loading = false;
};

// Of the text of INFO. What it does not say stays empty.
RedisHealth read_info(std::string_view info);

}  // namespace weir
