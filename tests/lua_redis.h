// Enough of Redis around Lua 5.1 to run the script in process: the few commands it calls, on a map of strings, and a
// clock that the test sets. Keys do not expire here; their expiry times are kept, so tests can check them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine.h"
#include "fleet/script_call.h"
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

  // The integers that the script returns, or the error that it raises or replies with. `words` are the number of keys,
  // the keys and the arguments.
  Result<std::vector<std::int64_t>> call(LuaDatabase& database, std::int64_t now_us,
                                         std::span<const std::string_view> words);
  // The same, with the answers where the requests want them.
  Result<fleet::ScriptCall::Read> call(LuaDatabase& database, std::int64_t now_us, fleet::ScriptCall& call,
                                       std::int64_t deadline_us = 0, std::int64_t window_of = 0);

 private:
  class Memory;

  std::unique_ptr<Memory> memory_;  // of lua_
  lua_State* lua_;
};

// The script, in process, as an engine.
std::unique_ptr<Engine> lua_engine(const std::shared_ptr<LuaRedis>& redis, const Limit& limit);

}  // namespace weir::test
