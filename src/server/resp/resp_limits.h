// A cache of compiled limits for the RESP port, keyed by the bytes of their arguments.
//
// Clients send the same few limits again and again. So a request's numbers are compared instead of parsed: one hash,
// one comparison. The turn may point to a returned limit until end_round(), so the limit keeps its slot until then. A
// new limit for an occupied slot gets a place that lasts for the round. The size is bounded: beyond the table, a
// round's limits take at most a few times the size of their input. Belongs to one loop and its thread. Tested by
// resp_limits_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/limit.h"

namespace weir::server::resp {

class RespLimits {
 public:
  static constexpr std::size_t kSlots = 512;
  static constexpr std::size_t kBytesMax = 54;

  // `kind` is the command, since the same bytes mean different limits to different commands. Null if not cached.
  const Limit* find(std::uint8_t kind, std::string_view bytes) {
    if (slots_.empty() || bytes.empty() || bytes.size() > kBytesMax) return nullptr;
    Slot& slot = slots_[place_of(kind, bytes)];
    if (slot.kind != kind || slot.size != bytes.size()) return nullptr;
    if (std::memcmp(slot.bytes, bytes.data(), bytes.size()) != 0) return nullptr;
    slot.round = round_;
    return &slot.limit;
  }

  // Caches the limit if possible; it is valid until end_round() in any case.
  const Limit* keep(std::uint8_t kind, std::string_view bytes, Limit limit) {
    if (bytes.empty() || bytes.size() > kBytesMax || !remembers_) return keep_for_round(std::move(limit));
    if (slots_.empty()) slots_.resize(kSlots);
    Slot& slot = slots_[place_of(kind, bytes)];
    if (slot.round == round_) return keep_for_round(std::move(limit));
    slot.limit = std::move(limit);
    slot.round = round_;
    slot.kind = kind;
    slot.size = static_cast<std::uint8_t>(bytes.size());
    std::memcpy(slot.bytes, bytes.data(), bytes.size());
    return &slot.limit;
  }
  const Limit* keep_for_round(Limit limit) { return &others_.emplace_back(std::move(limit)); }

  // Disables the cache where there are many of them: a table for each would take too much memory.
  void remember_nothing() { remembers_ = false; }

  // No returned limit is in use any longer.
  void end_round() {
    ++round_;
    if (!others_.empty()) others_.clear();
  }

 private:
  struct Slot {
    std::uint64_t round = 0;  // the last round that used it
    std::uint8_t kind = 0;
    std::uint8_t size = 0;  // 0: free
    char bytes[kBytesMax] = {};
    Limit limit{};
  };

  // Hashes the first and the last eight bytes and the size: the bytes in between rarely differ.
  static std::size_t place_of(std::uint8_t kind, std::string_view bytes) {
    std::uint64_t first = 0, last = 0;
    if (bytes.size() >= 8) {
      std::memcpy(&first, bytes.data(), 8);
      std::memcpy(&last, bytes.data() + bytes.size() - 8, 8);
    } else {
      std::memcpy(&first, bytes.data(), bytes.size());
    }
    const std::uint64_t mixed = (first ^ (bytes.size() << 8 | kind)) * 0x9E3779B97F4A7C15u + last;
    return static_cast<std::size_t>((mixed * 0xD6E8FEB86659FD93u) >> 55);
  }
  static_assert(kSlots == std::size_t{1} << (64 - 55));

  std::uint64_t round_ = 1;
  bool remembers_ = true;
  std::vector<Slot> slots_;   // allocated with the first limit
  std::deque<Limit> others_;  // of this round
};

}  // namespace weir::server::resp
