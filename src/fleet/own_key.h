// Names of the Redis keys that the fleet uses for its own data, beside the keys of limits. Pure; any thread. Tested
// by tests/fleet_nodes_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "fleet/redis_key.h"

namespace weir {

inline constexpr char kOwnMark = '!';

// weir:2!{0000}nodes
inline std::string own_key(std::string_view prefix, std::string_view name, char version = kRedisVersion) {
  std::string key(prefix);
  append_redis_head(key, kOwnMark, 0);
  key[prefix.size()] = version;
  return key.append(name);
}

}  // namespace weir
