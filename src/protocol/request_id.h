// The id that a client gave its request, to find it again in everybody's logs: passed on, never made up.
//
// Pure; any thread. Tested by http_session_test.cc and grpc_session_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir {

inline constexpr std::string_view kRequestIdField = "x-request-id";
inline constexpr std::size_t kRequestIdMax = 128;

// What is too long or not all visible ASCII is as good as none.
inline std::string_view request_id_or_none(std::string_view value) {
  if (value.size() > kRequestIdMax) return {};
  return std::ranges::all_of(value, [](char c) { return c > ' ' && c <= '~'; }) ? value : std::string_view{};
}

}  // namespace weir
