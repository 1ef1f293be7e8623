// Which of a cluster's 16,384 slots a key belongs to: CRC16 of its hash tag, or of all of it.
//
//     slot_of("{user1000}.following") == slot_of("{user1000}.followers")
//
// Pure; any thread. Tested by slot_test.cc.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::redis {

inline constexpr int kSlots = 16'384;

// XMODEM's: polynomial 0x1021, nothing reflected, from 0.
std::uint16_t crc16(std::string_view bytes);

// What stands between the first brace and the next closing one counts alone, unless it is nothing.
int slot_of(std::string_view key);

}  // namespace weir::redis
