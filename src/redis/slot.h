// Maps a key to one of a cluster's 16,384 slots: the CRC16 of its hash tag, or of the whole key.
//
//     slot_of("{user1000}.following") == slot_of("{user1000}.followers")
//
// Pure; any thread may call it. Tested by slot_test.cc.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::redis {

inline constexpr int kSlots = 16'384;

// CRC16/XMODEM: polynomial 0x1021, no reflection, initial value 0.
std::uint16_t crc16(std::string_view bytes);

// Only the text between the first brace and the next closing brace counts, unless it is empty.
int slot_of(std::string_view key);

}  // namespace weir::redis
