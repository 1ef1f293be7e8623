// The commands, the `struct` library and the engine that the script is run with. See lua_redis.h.

#include "lua_redis.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lua.hpp>
#include <new>
#include <utility>

#include "fleet/script_call.h"

namespace weir::test {
namespace {

struct Call {
  LuaDatabase* database;
  std::int64_t now_us;
};

Call& current(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, "call");
  auto* call = static_cast<Call*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *call;
}

std::string text_at(lua_State* lua, int place) {
  std::size_t size = 0;
  const char* text = luaL_checklstring(lua, place, &size);
  return {text, size};
}

void push(lua_State* lua, const std::string& text) { lua_pushlstring(lua, text.data(), text.size()); }

int push_time(lua_State* lua, std::int64_t now_us) {
  lua_newtable(lua);
  push(lua, std::to_string(now_us / 1'000'000));
  lua_rawseti(lua, -2, 1);
  push(lua, std::to_string(now_us % 1'000'000));
  lua_rawseti(lua, -2, 2);
  return 1;
}

// Redis answers nil as false.
int get(lua_State* lua, LuaDatabase& database, const std::string& key) {
  const auto found = database.values.find(key);
  if (found == database.values.end()) {
    lua_pushboolean(lua, 0);
  } else {
    push(lua, found->second);
  }
  return 1;
}

int get_range(lua_State* lua, LuaDatabase& database, const std::string& key) {
  const auto from = static_cast<std::size_t>(luaL_checknumber(lua, 3));
  const double end = luaL_checknumber(lua, 4);  // below 0: seen from the end
  const auto found = database.values.find(key);
  const std::string value = found == database.values.end() ? "" : found->second;
  const std::size_t to = end < 0 ? value.size() - static_cast<std::size_t>(-end) : static_cast<std::size_t>(end);
  push(lua, from < value.size() ? value.substr(from, to - from + 1) : "");
  return 1;
}

int set_range(lua_State* lua, LuaDatabase& database, const std::string& key) {
  const auto from = static_cast<std::size_t>(luaL_checknumber(lua, 3));
  const std::string part = text_at(lua, 4);
  std::string& value = database.values[key];
  value.resize(std::max(value.size(), from + part.size()));
  value.replace(from, part.size(), part);
  return 0;
}

int set(lua_State* lua, LuaDatabase& database, const std::string& key) {
  database.values[key] = text_at(lua, 3);
  if (lua_gettop(lua) == 4 && text_at(lua, 4) == "KEEPTTL") return 0;
  database.expires_ms.erase(key);
  if (lua_gettop(lua) < 5) return 0;
  const bool is_relative = text_at(lua, 4) == "PX";
  database.expires_ms[key] = std::atoll(text_at(lua, 5).c_str()) + (is_relative ? current(lua).now_us / 1'000 : 0);
  return 0;
}

int get_many(lua_State* lua, LuaDatabase& database) {
  const int count = lua_gettop(lua);
  lua_createtable(lua, count - 1, 0);
  for (int i = 2; i <= count; ++i) {
    get(lua, database, text_at(lua, i));
    lua_rawseti(lua, -2, i - 1);
  }
  return 1;
}

int redis_call(lua_State* lua) {
  Call& call = current(lua);
  LuaDatabase& database = *call.database;
  const std::string command = text_at(lua, 1);
  if (command == "TIME") return push_time(lua, call.now_us);
  const std::string key = text_at(lua, 2);
  if (command == "MGET") return get_many(lua, database);
  if (command == "GETRANGE") return get_range(lua, database, key);
  if (command == "SETRANGE") return set_range(lua, database, key);
  if (command == "SET") return set(lua, database, key);
  if (command == "PEXPIREAT") {
    database.expires_ms[key] = std::atoll(text_at(lua, 3).c_str());
    return 0;
  }
  if (command == "DEL") {
    lua_pushnumber(lua, static_cast<double>(database.values.erase(key)));
    database.expires_ms.erase(key);
    return 1;
  }
  return luaL_error(lua, "LuaRedis has no command %s", command.c_str());
}

int redis_error_reply(lua_State* lua) {
  lua_newtable(lua);
  push(lua, text_at(lua, 1));
  lua_setfield(lua, -2, "err");
  return 1;
}

// The formats in use: doubles ('d'), bytes ('B'), words ('H'), strings of a length ("c26"), and a byte's length before
// a string ("Bc0"); little endian.
int struct_pack(lua_State* lua) {
  const std::string format = text_at(lua, 1);
  std::string out;
  int place = 2;
  for (const char c : format) {
    if (c == 'd') {
      const double number = luaL_checknumber(lua, place++);
      out.append(reinterpret_cast<const char*>(&number), sizeof number);
    } else if (c == 'H') {
      const auto number = static_cast<std::uint16_t>(luaL_checknumber(lua, place++));
      out.append(reinterpret_cast<const char*>(&number), sizeof number);
    } else if (c == 'B') {
      out.push_back(static_cast<char>(luaL_checknumber(lua, place++)));
    } else if (c == 'c') {
      out += text_at(lua, place++);
    }
  }
  push(lua, out);
  return 1;
}

// The number that begins at this byte; moves `at` behind it.
template <class Number>
double number_at(const std::string& data, std::size_t& at) {
  Number number{};
  std::memcpy(&number, data.data() + at, sizeof number);
  at += sizeof number;
  return static_cast<double>(number);
}

int struct_unpack(lua_State* lua) {
  const std::string format = text_at(lua, 1), data = text_at(lua, 2);
  std::size_t at = lua_gettop(lua) >= 3 ? static_cast<std::size_t>(luaL_checknumber(lua, 3)) - 1 : 0;
  std::size_t length = 0;
  int results = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if (at + (c == 'd' ? 8 : c == 'H' ? 2 : c == 'B' ? 1 : 0) > data.size()) {
      return luaL_error(lua, "data string too short");
    }
    if (c == 'd' || c == 'H') {
      lua_pushnumber(lua, c == 'd' ? number_at<double>(data, at) : number_at<std::uint16_t>(data, at));
      ++results;
    } else if (c == 'B') {
      length = static_cast<unsigned char>(data.at(at++));
      if (i + 1 < format.size() && format[i + 1] == 'c') continue;
      lua_pushnumber(lua, static_cast<double>(length));
      ++results;
    } else if (c == 'c') {
      const char* const digits = format.c_str() + i + 1;
      if (*digits != '0') length = std::strtoul(digits, nullptr, 10);
      if (at + length > data.size()) return luaL_error(lua, "data string too short");
      push(lua, data.substr(at, length));
      at += length;
      ++results;
    }
  }
  lua_pushnumber(lua, static_cast<double>(at + 1));
  return results + 1;
}

void set_function(lua_State* lua, const char* name, lua_CFunction function) {
  lua_pushcfunction(lua, function);
  lua_setfield(lua, -2, name);
}

void set_list(lua_State* lua, const char* name, std::span<const std::string_view> values) {
  lua_createtable(lua, static_cast<int>(values.size()), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    lua_pushlstring(lua, values[i].data(), values[i].size());
    lua_rawseti(lua, -2, static_cast<int>(i + 1));
  }
  lua_setglobal(lua, name);
}

class LuaEngine final : public Engine {
 public:
  LuaEngine(std::shared_ptr<LuaRedis> redis, const Limit& limit) : redis_(std::move(redis)), limit_(limit) {}
  std::string_view name() const override { return "Lua"; }
  std::unique_ptr<Engine> clone() const override { return std::make_unique<LuaEngine>(*this); }
  void change(const Limit& limit) override {
    limit_ = limit;
    has_changed_ = true;
  }
  Decision check(std::int64_t now, std::int64_t cost) override { return ask(What::charge, now, {}, cost); }
  Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) override {
    const Charge charge{.key = "k", .limit = &limit_, .cost = cost};
    fleet::ScriptRequest request{.what = What::undo, .charges = {&charge, 1}, .charged_us = at};
    fleet::ScriptCall call("");
    call.add(request);
    const auto read = redis_->call(database_, now, call);
    if (!read) return broken(read.error().message);
    Decision decision = check(now, 0);
    decision.allowed = true;
    decision.retry_after = Micros{0};
    return decision;
  }
  Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) override {
    return ask(What::acquire, now, id, cost);
  }
  bool release(std::int64_t now, std::string_view id) override { return ask(What::release, now, id, -1).allowed; }

 private:
  using What = fleet::ScriptRequest::What;

  Decision ask(What what, std::int64_t now, std::string_view id, std::int64_t cost) {
    const Charge charge{.key = "k", .limit = what == What::release ? nullptr : &limit_, .cost = cost};
    Decision decision;
    fleet::ScriptRequest request{.what = what, .charges = {&charge, 1}, .id = id, .decisions = {&decision, 1}};
    fleet::ScriptCall call("");
    call.add(request);
    const auto read = redis_->call(database_, now, call);
    if (!read) return broken(read.error().message);
    if (call.now_us() != now) return broken("the script answered for another time");
    if ((request.ruling == fleet::Ruling::allowed) != decision.allowed) return broken("verdict and decision differ");
    if (what == What::release) return decision;
    longest_ = std::max(longest_, decision.reset_after.count());
    latest_ = std::max(latest_, now);
    until_ = std::max(until_, now + decision.reset_after.count());
    if (const char* wrong = wrong_expiry(now, decision, cost)) return broken(wrong);
    return decision;
  }

  // A state stays until it would decide like an absent one, and at most a millisecond longer. If that is more than a
  // second, it may stay twice as long, but at most an hour and a second longer.
  const char* wrong_expiry(std::int64_t now, const Decision& decision, std::int64_t cost) const {
    if (decision.reset_after.count() == 0 || cost == 0) return nullptr;
    const auto found = database_.expires_ms.begin();
    if (found == database_.expires_ms.end()) return "a state has no expiry";
    const std::int64_t until = now + decision.reset_after.count();
    if (found->second * 1000 < until) return "a state expires too early";
    // The script keeps an expiry that is late enough, also after a refund and when time runs backwards.
    const bool is_rough = longest_ > 1'000'000;
    // Beside the state of another period it stays as long as that one.
    const std::int64_t most = is_rough        ? latest_ + longest_ + std::min<std::int64_t>(longest_, 3'600'000'000)
                              : !has_changed_ ? until
                                              : until_;
    if (decision.allowed && found->second * 1000 >= most + (is_rough ? 1'001'000 : 1'000))
      return "a state expires too late";
    return nullptr;
  }

  static Decision broken(const std::string& why) {
    std::fprintf(stderr, "the script failed: %s\n", why.c_str());
    return Decision{.limit = -1};
  }

  std::shared_ptr<LuaRedis> redis_;
  Limit limit_;
  LuaDatabase database_;
  std::int64_t longest_ = 0;  // the longest time until the key is full again
  std::int64_t latest_ = 0;   // the latest time of a request
  std::int64_t until_ = 0;    // the latest time at which the key is full again, under any period
  bool has_changed_ = false;
};

}  // namespace

// Allocates small blocks from pages, and reuses each for the next block of its size. A call of the script needs
// hundreds of blocks, and malloc of a sanitizer takes longer for them than Lua for the rest. Lua passes the size of a
// block that it frees.
class LuaRedis::Memory {
 public:
  // As lua_newstate() wants it: with `wanted` of 0 the block is freed.
  static void* change(void* self, void* block, std::size_t size, std::size_t wanted) {
    auto& memory = *static_cast<Memory*>(self);
    if (block != nullptr && is_small(size) && is_small(wanted) && class_of(size) == class_of(wanted)) return block;
    if (block != nullptr && !is_small(size) && !is_small(wanted) && wanted != 0) return std::realloc(block, wanted);
    void* const changed = wanted == 0 ? nullptr : memory.take(wanted);
    if (block == nullptr || (changed == nullptr && wanted != 0)) return changed;
    if (wanted != 0) std::memcpy(changed, block, std::min(size, wanted));
    memory.give_back(block, size);
    return changed;
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kUnit = 16, kClasses = 32, kPage = 65'536;

  static bool is_small(std::size_t size) { return size > 0 && size <= kUnit * kClasses; }
  static std::size_t class_of(std::size_t size) { return (size - 1) / kUnit; }

  void* take(std::size_t size) {
    if (!is_small(size)) return std::malloc(size);
    Free*& first = free_[class_of(size)];
    if (first != nullptr) return std::exchange(first, first->next);
    const std::size_t rounded = (class_of(size) + 1) * kUnit;
    if (used_ + rounded > kPage) {
      pages_.push_back(std::make_unique<std::max_align_t[]>(kPage / sizeof(std::max_align_t)));
      used_ = 0;
    }
    used_ += rounded;
    return reinterpret_cast<char*>(pages_.back().get()) + used_ - rounded;
  }

  void give_back(void* block, std::size_t size) {
    if (!is_small(size)) return std::free(block);
    Free*& first = free_[class_of(size)];
    first = new (block) Free{first};
  }

  std::vector<std::unique_ptr<std::max_align_t[]>> pages_;
  std::size_t used_ = kPage;  // of the last page
  Free* free_[kClasses] = {};
};

LuaRedis::LuaRedis(std::string_view script)
    : memory_(std::make_unique<Memory>()), lua_(lua_newstate(Memory::change, memory_.get())) {
  luaL_openlibs(lua_);
  lua_newtable(lua_);
  set_function(lua_, "call", redis_call);
  set_function(lua_, "error_reply", redis_error_reply);
  lua_setglobal(lua_, "redis");
  lua_newtable(lua_);
  set_function(lua_, "pack", struct_pack);
  set_function(lua_, "unpack", struct_unpack);
  lua_setglobal(lua_, "struct");
  if (luaL_loadbuffer(lua_, script.data(), script.size(), "@script") != 0) {
    std::fprintf(stderr, "the script does not load: %s\n", lua_tostring(lua_, -1));
    std::abort();
  }
  lua_setfield(lua_, LUA_REGISTRYINDEX, "script");
}

LuaRedis::~LuaRedis() { lua_close(lua_); }

Result<fleet::ScriptCall::Read> LuaRedis::call(LuaDatabase& database, std::int64_t now_us, fleet::ScriptCall& call,
                                               std::int64_t deadline_us, std::int64_t window_of) {
  const auto reply = this->call(database, now_us, call.words(deadline_us, window_of == 0 ? now_us : window_of));
  if (!reply) return fail(reply.error());
  return call.read(*reply);
}

Result<std::vector<std::int64_t>> LuaRedis::call(LuaDatabase& database, std::int64_t now_us,
                                                 std::span<const std::string_view> words) {
  // Redis would have removed these keys. Here they stay, so that tests can compare them, but without their expiry.
  for (const auto& [key, expires_ms] : database.expires_ms) {
    std::string& value = database.values[key];
    if (expires_ms * 1'000 <= now_us && value.size() == 44) value.replace(42, 2, 2, '\0');
  }
  Call call{&database, now_us};
  lua_pushlightuserdata(lua_, &call);
  lua_setfield(lua_, LUA_REGISTRYINDEX, "call");
  const auto keys = static_cast<std::size_t>(std::stoul(std::string(words[0])));
  set_list(lua_, "KEYS", words.subspan(1, keys));
  set_list(lua_, "ARGV", words.subspan(1 + keys));
  lua_getfield(lua_, LUA_REGISTRYINDEX, "script");
  const int status = lua_pcall(lua_, 0, 1, 0);
  std::vector<std::int64_t> numbers;
  std::string error;
  if (status != 0) {
    error = lua_tostring(lua_, -1);
  } else {
    lua_getfield(lua_, -1, "err");
    if (lua_isstring(lua_, -1) != 0) error = lua_tostring(lua_, -1);
    lua_pop(lua_, 1);
    const std::size_t size = error.empty() ? lua_objlen(lua_, -1) : 0;
    for (std::size_t i = 1; i <= size; ++i) {
      lua_rawgeti(lua_, -1, static_cast<int>(i));
      numbers.push_back(static_cast<std::int64_t>(lua_tonumber(lua_, -1)));
      lua_pop(lua_, 1);
    }
  }
  lua_pop(lua_, 1);
  if (!error.empty()) return fail(ErrorCode::unavailable, error);
  return numbers;
}

std::unique_ptr<Engine> lua_engine(const std::shared_ptr<LuaRedis>& redis, const Limit& limit) {
  return std::make_unique<LuaEngine>(redis, limit);
}

}  // namespace weir::test
