// A hash map whose lookup reads one cache line of an array, and the entry itself only if the key is present.
//
//   FlatMap<Key, Value, Hash> map;
//   if (Value* known = map.find(key)) ...          // valid until something is removed
//   auto [value, is_new] = map.insert(key, {});
//   map.erase(key);
//
// std::unordered_map follows pointers to several distant entries per key. Insertion never moves an entry. Removal
// moves the last entry into the gap. A slot stores the upper 32 bits of the hash, and only keys that match those bits
// are compared. So any hash is correct, and a good hash is fast. One thread at a time. Tested by flat_map_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir::fleet {

template <class Key, class Value, class Hash>
class FlatMap {
 public:
  struct Entry {
    Key key{};
    Value value{};
  };

  std::size_t size() const { return entries_.size(); }
  // In no particular order.
  const std::deque<Entry>& entries() const { return entries_; }
  std::deque<Entry>& entries() { return entries_; }

  Value* find(const Key& key) {
    const std::size_t at = slot_of(key);
    return at == kNone ? nullptr : &entries_[slots_[at].place - 1].value;
  }
  // Changes nothing if the key is present.
  std::pair<Value*, bool> insert(const Key& key, Value value) {
    if (Value* const known = find(key)) return {known, false};
    if ((entries_.size() + 1) * 2 > slots_.size()) grow();
    entries_.push_back({key, std::move(value)});
    put({tag_of(key), static_cast<std::uint32_t>(entries_.size())});
    WEIR_ASSERT(entries_.size() * 2 <= slots_.size());
    return {&entries_.back().value, true};
  }
  bool erase(const Key& key) {
    const std::size_t at = slot_of(key);
    if (at == kNone) return false;
    const std::uint32_t place = slots_[at].place;
    close_gap(at);
    if (place < entries_.size()) {
      Entry& last = entries_.back();
      slots_[slot_of(last.key)].place = place;
      entries_[place - 1] = std::move(last);
    }
    entries_.pop_back();
    return true;
  }
  template <class Predicate>
  void erase_if(Predicate is_meant) {
    for (std::size_t i = entries_.size(); i-- > 0;) {
      if (!is_meant(entries_[i])) continue;
      const Key key = entries_[i].key;
      erase(key);
    }
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static constexpr std::size_t kSlotsMin = 64;
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t place = 0;  // position of its entry plus one; 0: empty
  };

  static std::uint32_t tag_of(const Key& key) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(Hash{}(key)) >> 32);
  }
  std::size_t home_of(std::uint32_t tag) const { return tag & (slots_.size() - 1); }
  std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

  std::size_t slot_of(const Key& key) const {
    if (entries_.empty()) return kNone;
    const std::uint32_t tag = tag_of(key);
    for (std::size_t at = home_of(tag); slots_[at].place != 0; at = next(at)) {
      if (slots_[at].tag == tag && entries_[slots_[at].place - 1].key == key) return at;
    }
    return kNone;
  }
  void put(Slot slot) {
    std::size_t at = home_of(slot.tag);
    while (slots_[at].place != 0) at = next(at);
    slots_[at] = slot;
  }
  void grow() {
    const std::vector<Slot> before = std::exchange(slots_, {});
    slots_.resize(before.empty() ? kSlotsMin : before.size() * 2);
    for (const Slot& slot : before) {
      if (slot.place != 0) put(slot);
    }
  }
  // A search stops at an empty slot, so a removal moves later entries up. It never moves an entry before its home
  // slot.
  void close_gap(std::size_t gap) {
    for (std::size_t at = next(gap); slots_[at].place != 0; at = next(at)) {
      const std::size_t mask = slots_.size() - 1, home = home_of(slots_[at].tag);
      if (((at - home) & mask) < ((at - gap) & mask)) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
  }

  std::deque<Entry> entries_;
  std::vector<Slot> slots_;  // size is a power of two
};

}  // namespace weir::fleet
