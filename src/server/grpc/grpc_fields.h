// Conversions between our strings and the bytes and flags of nghttp2.
//
// Pure; any thread. Tested by grpc_session_test.cc.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir {

inline constexpr std::uint8_t kNoCopy = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;

inline std::uint8_t* bytes_of(std::string_view text) {
  return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
}

// field() is for literals, which nghttp2 need not copy; copied() is for values that do not last.
inline nghttp2_nv field(std::string_view name, std::string_view value) {
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), kNoCopy};
}
inline nghttp2_nv copied(std::string_view name, std::string_view value) {
  return {bytes_of(name), bytes_of(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

inline std::string_view view_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline bool has_flag(const nghttp2_frame* frame, std::uint8_t flag) { return (frame->hd.flags & flag) != 0; }

}  // namespace weir
