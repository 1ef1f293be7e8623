// Maps a key to one of a cluster's 16,384 slots: the CRC16 of its hash tag, or of the whole key.
//
//     slot_of("{user1000}.following") == slot_of("{user1000}.followers")
//
// Pure; any thread may call it. Tested by slot_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::redis {

inline constexpr int kSlots = 16'384;

inline constexpr std::array<std::uint16_t, 256> kCrcTable = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021U : crc << 1;
    table[byte] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

// CRC16/XMODEM: polynomial 0x1021, no reflection, initial value 0.
constexpr std::uint16_t crc16(std::string_view bytes) {
  unsigned crc = 0;
  for (const char c : bytes) {
    crc = ((crc << 8) ^ kCrcTable[((crc >> 8) ^ static_cast<unsigned char>(c)) & 0xFFU]) & 0xFFFFU;
  }
  return static_cast<std::uint16_t>(crc);
}

// Only the text between the first brace and the next closing brace counts, unless it is empty.
constexpr int slot_of(std::string_view key) {
  if (const std::size_t open = key.find('{'); open != key.npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  return crc16(key) % kSlots;
}

}  // namespace weir::redis
