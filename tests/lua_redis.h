// Just enough of Redis around Lua 5.1 to run the script in process: the few commands it calls on a map of strings, and
// a clock that says what it is told. Keys do not expire here; when they would is kept, so that tests can look at it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine.h"
#include "weir/result.h"

struct lua_State;

namespace weir::test {

struct LuaDatabase {
  std::map<std::string, std::string> values;
  std::map<std::string, std::int64_t> expires_ms;
};

class LuaRedis {
 public:
  explicit LuaRedis(std::string_view script);
  ~LuaRedis();
  LuaRedis(const LuaRedis&) = delete;
  LuaRedis& operator=(const LuaRedis&) = delete;

  // The integers that the script returns, or the error that it raises or replies with.
  Result<std::vector<std::int64_t>> call(LuaDatabase& database, std::int64_t now_us, std::span<const std::string> keys,
                                         std::span<const std::string> arguments);

 private:
  lua_State* lua_;
};

// The script, in process, as an engine.
std::unique_ptr<Engine> lua_engine(const std::shared_ptr<LuaRedis>& redis, const Limit& limit);

}  // namespace weir::test
