// The id that a client gave its request, to find it in every log. We pass it on, and never create one.
//
// Pure; any thread may call it. Tested by http_session_test.cc and grpc_session_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace weir::protocol {

inline constexpr std::string_view kRequestIdField = "x-request-id";
inline constexpr std::size_t kRequestIdMax = 128;

// Ignores an id that is too long or is not entirely visible ASCII.
inline std::string_view request_id_or_none(std::string_view value) {
  if (value.size() > kRequestIdMax) return {};
  return std::ranges::all_of(value, [](char c) { return c > ' ' && c <= '~'; }) ? value : std::string_view{};
}

}  // namespace weir::protocol
