// The scripts that run inside Redis, as the build embeds them: one decides checks, the others serve the fleet itself.
// Each text is a constant, so any thread may use it. Tested by tests/redis_script_test.cc.
#pragma once

#include <string_view>

namespace weir::fleet {

// Decides checks: the Lua twins of all algorithms and script.lua, joined into one text. Send it with EVALSHA; the head
// of script.lua documents the call.
std::string_view redis_script();
std::string_view heartbeat_script();   // heartbeat.lua
std::string_view shared_log_script();  // shared_log.lua

}  // namespace weir::fleet
