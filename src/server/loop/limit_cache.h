// A cache of compiled limits, by the bytes in which clients send them.
//
// Clients send the same few limits again and again. So their bytes are compared instead of parsed: one hash, one or two
// comparisons. Compiling a calendar limit reads the time zone's file, for which no request should wait. The cache keeps
// errors too, since finding the nearest valid text takes time. It does not keep the error of a zone file that could not
// be read, because the next request may find the file.
//
// A returned limit stays in place until the round ends, because the turn may point to it. A limit without a free slot
// gets a place that lasts for the round. The size is bounded: beyond the slots, a round's limits take at most a few
// times the size of their input. Belongs to one loop and its thread. Tested by limit_cache_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/limit.h"

namespace weir::server::loop {

class LimitCache {
 public:
  static constexpr std::size_t kSlots = 1'024;
  static constexpr std::size_t kSlotsOfMany = 64;  // where there are many caches
  static constexpr std::size_t kBytesMax = 256;    // of a text; other bytes are not cached if there are more

  explicit LimitCache(std::size_t slots = kSlots) : mask_(slots - 1) {
    WEIR_ASSERT(slots >= 2 && slots <= kSlots && (slots & mask_) == 0);
  }

  // The same bytes mean different limits to different commands. The kinds of texts are 0 to kTexts.
  static constexpr std::uint8_t kTexts = std::size(kAlgorithms);
  static constexpr std::uint8_t kind_of(std::optional<Algorithm> algorithm) {
    return algorithm ? static_cast<std::uint8_t>(1 + static_cast<unsigned>(*algorithm)) : 0;
  }

  // Null if no valid limit is cached.
  const Limit* find(std::uint8_t kind, std::string_view bytes) {
    const Result<Limit>* const known = look_up(kind, bytes);
    return known != nullptr && *known ? &**known : nullptr;
  }

  // Caches the limit or its error, if possible. The limit is valid until end_round() in any case, an error may be valid
  // only until the next call.
  const Result<Limit>& keep(std::uint8_t kind, std::string_view bytes, Result<Limit> limit) {
    Slot* const slot = limit || limit.error().code != ErrorCode::unavailable ? free_slot(kind, bytes) : nullptr;
    if (slot == nullptr && limit) return others_.emplace_back(std::move(limit));
    if (slot == nullptr) return passing_ = std::move(limit);
    if (slot->bytes.empty()) ++size_;
    slot->bytes = bytes;  // first, as it may find no memory
    slot->round = round_;
    slot->kind = kind;
    return slot->limit = std::move(limit);
  }

  // As find() and keep(), for a text.
  const Result<Limit>& compile(std::string_view text, std::optional<Algorithm> algorithm) {
    if (text.size() > kBytesMax) return passing_ = too_long(text.size());
    const std::uint8_t kind = kind_of(algorithm);
    if (const Result<Limit>* const known = look_up(kind, text)) return *known;
    return keep(kind, text, weir::compile(text, algorithm));
  }

  // No returned limit is in use any longer.
  void end_round() {
    ++round_;
    if (!others_.empty()) others_.clear();
  }

  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t round = 0;  // the last round that used it
    std::uint8_t kind = 0;
    std::string bytes{};  // empty: free
    Result<Limit> limit{};
  };

  const Result<Limit>* look_up(std::uint8_t kind, std::string_view bytes) {
    if (slots_.empty() || bytes.empty()) return nullptr;
    const std::size_t place = place_of(kind, bytes);
    for (Slot* const slot : {&slots_[place], &slots_[place ^ 1]}) {
      if (slot->kind != kind || slot->bytes != bytes) continue;
      slot->round = round_;
      return &slot->limit;
    }
    return nullptr;
  }

  // Of the two slots for these bytes, the one that was not in use for longer. Null if the round uses both.
  Slot* free_slot(std::uint8_t kind, std::string_view bytes) {
    if (bytes.empty() || bytes.size() > kBytesMax) return nullptr;
    if (slots_.empty()) slots_.resize(mask_ + 1);
    const std::size_t place = place_of(kind, bytes);
    Slot& first = slots_[place];
    Slot& second = slots_[place ^ 1];
    Slot& older = second.round < first.round ? second : first;
    return older.round < round_ ? &older : nullptr;
  }

  // Hashes the first and the last eight bytes and the size: the bytes in between rarely differ.
  std::size_t place_of(std::uint8_t kind, std::string_view bytes) const {
    std::uint64_t first = 0, last = 0;
    if (bytes.size() >= 8) {
      std::memcpy(&first, bytes.data(), 8);
      std::memcpy(&last, bytes.data() + bytes.size() - 8, 8);
    } else {
      std::memcpy(&first, bytes.data(), bytes.size());
    }
    const std::uint64_t mixed = (first ^ (bytes.size() << 8 | kind)) * 0x9E3779B97F4A7C15u + last;
    return static_cast<std::size_t>((mixed * 0xD6E8FEB86659FD93u) >> 48) & mask_;
  }

  static Result<Limit> too_long(std::size_t size) {
    return fail(ErrorCode::out_of_range, "the limit has " + std::to_string(size) + " bytes; at most " +
                                             std::to_string(kBytesMax) + " are allowed");
  }

  const std::size_t mask_;
  std::uint64_t round_ = 1;
  std::size_t size_ = 0;
  std::vector<Slot> slots_;           // allocated with the first limit
  std::deque<Result<Limit>> others_;  // of this round
  Result<Limit> passing_{};           // an error that is not cached
};

}  // namespace weir::server::loop
