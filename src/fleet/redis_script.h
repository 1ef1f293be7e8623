// The script that decides inside Redis: the Lua twins of all algorithms and script.lua, which the build joins
// into one text. Send it with EVALSHA; the head of script.lua documents the call. Any thread.
#pragma once

#include <string_view>

namespace weir {

std::string_view redis_script();

}  // namespace weir
