// The script that decides inside Redis: the Lua twins of all algorithms and store/script.lua, assembled by the
// build into one text. Send it with EVALSHA; how it is called stands at the head of script.lua.
#pragma once

#include <string_view>

namespace weir {

std::string_view redis_script();

}  // namespace weir
