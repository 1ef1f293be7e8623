// The parts of the map, their rings and who is pushed out. See plan_cache.h.
#include "plans/plan_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <unordered_map>
#include <utility>

#include "table/siphash.h"

namespace weir {
namespace {

constexpr std::size_t kPartsMax = 1024;
constexpr std::size_t kSubjectsAPart = 256;  // with fewer, a part more is not worth it
constexpr std::size_t kReservedMax = 4096;
constexpr int kChancesMax = 64;              // so many who were asked about are passed over, then one goes anyhow
constexpr std::size_t kWithoutRowShare = 8;  // an eighth

enum Ring : std::size_t { kWithoutRow, kWithRow, kRings };

struct Entry {
  std::string text{};                            // what the database said, as row_text() writes it
  const std::string* plan = nullptr;             // null: the default
  std::shared_ptr<const std::string> instead{};  // and its end
  Micros until{0};
  PlanCache::Mark mark{};
  std::uint32_t asked = 0;
  std::size_t place = 0;  // in its ring
  bool is_pending = true, is_queued = false, was_asked = false;

  Ring ring() const { return text.empty() ? kWithoutRow : kWithRow; }
};

// The hash was computed before the lock was taken, and is passed along with the name.
struct Name {
  std::string_view text;
  std::size_t hash;
};
struct Key {
  std::string text;
  std::size_t hash;
};
struct HashName {
  using is_transparent = void;
  std::size_t operator()(const Key& key) const { return key.hash; }
  std::size_t operator()(const Name& name) const { return name.hash; }
};
struct SameName {
  using is_transparent = void;
  bool operator()(const Key& a, const Key& b) const { return a.text == b.text; }
  bool operator()(const Name& a, const Key& b) const { return a.text == b.text; }
  bool operator()(const Key& a, const Name& b) const { return a.text == b.text; }
};

std::uint64_t random_word() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

struct PlanCache::Part {
  using Map = std::unordered_map<Key, Entry, HashName, SameName>;
  using Node = Map::value_type;

  mutable std::mutex mutex;  // guards all of this
  std::condition_variable answered;
  int waiting = 0;
  Map map;
  std::array<std::vector<Node*>, kRings> rings;
  std::array<std::size_t, kRings> hands{};

  void enter(Node& node) {
    std::vector<Node*>& ring = rings[node.second.ring()];
    node.second.place = ring.size();
    ring.push_back(&node);
  }
  // The last of the ring takes the place: a walk from the end to the beginning sees everybody.
  void leave(const Node& node, Ring which) {
    std::vector<Node*>& ring = rings[which];
    ring[node.second.place] = ring.back();
    ring[node.second.place]->second.place = node.second.place;
    ring.pop_back();
  }
  Node& to_push_out() {
    const std::size_t without = rings[kWithoutRow].size();
    const Ring which = rings[kWithRow].empty() || without * kWithoutRowShare > map.size() ? kWithoutRow : kWithRow;
    std::vector<Node*>& ring = rings[which];
    std::size_t& hand = hands[which];
    for (int chances = kChancesMax;; ++hand) {
      if (hand >= ring.size()) hand = 0;
      if (!ring[hand]->second.was_asked || --chances < 0) return *ring[hand];
      ring[hand]->second.was_asked = false;
    }
  }
};

PlanCache::PlanCache(std::size_t subjects_max)
    : subjects_max_(std::max<std::size_t>(subjects_max, 1)), secret_{random_word(), random_word()} {
  const std::size_t parts = std::clamp<std::size_t>(std::bit_floor(subjects_max_ / kSubjectsAPart), 1, kPartsMax);
  for (std::size_t i = 0; i < parts; ++i) {
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->map.reserve(std::min(subjects_max_ / parts * 5 / 4, kReservedMax));  // else it is rehashed in a lock
  }
}

PlanCache::~PlanCache() = default;

PlanCache::Part& PlanCache::part_of(std::string_view subject, std::size_t& hash) const {
  const table::Hash128 both = table::siphash13({secret_[0], secret_[1]}, subject);
  hash = both.low;
  return *parts_[both.high & (parts_.size() - 1)];
}

PlanTerms PlanCache::find(std::string_view subject, bool& wants_lookup) {
  std::size_t hash = 0;
  Part& part = part_of(subject, hash);
  const std::uint32_t tick = tick_.load(std::memory_order_relaxed);
  const std::lock_guard lock(part.mutex);
  const auto found = part.map.find(Name{subject, hash});
  if (found == part.map.end()) {
    if (is_full() && !part.map.empty()) {
      Part::Node& out = part.to_push_out();
      if (out.second.is_pending) pending_.fetch_sub(1, std::memory_order_relaxed);
      part.leave(out, out.second.ring());
      part.map.erase(part.map.find(Name{out.first.text, out.first.hash}));
      size_.fetch_sub(1, std::memory_order_relaxed);
      evicted_.fetch_add(1, std::memory_order_relaxed);
    }
    const auto [made, is_new] = part.map.try_emplace(Key{std::string(subject), hash});
    made->second.is_queued = true;
    made->second.asked = tick;
    part.enter(*made);
    size_.fetch_add(1, std::memory_order_relaxed);
    pending_.fetch_add(1, std::memory_order_relaxed);
    wants_lookup = true;
    return {.is_pending = true};
  }
  Entry& entry = found->second;
  entry.was_asked = true;
  entry.asked = tick;
  wants_lookup = entry.is_pending && !entry.is_queued;
  if (wants_lookup) entry.is_queued = true;
  PlanTerms terms{.instead = entry.instead, .until = entry.until, .is_pending = entry.is_pending};
  if (entry.plan != nullptr) terms.plan = *entry.plan;
  return terms;
}

void PlanCache::not_queued(std::string_view subject) {
  std::size_t hash = 0;
  Part& part = part_of(subject, hash);
  const std::lock_guard lock(part.mutex);
  const auto found = part.map.find(Name{subject, hash});
  if (found != part.map.end()) found->second.is_queued = false;
}

PlanCache::Waited PlanCache::wait(std::string_view subject, Micros most) {
  std::size_t hash = 0;
  Part& part = part_of(subject, hash);
  Waited waited = Waited::not_at_all;
  // Looked for anew each time: whoever is waited for may be pushed out meanwhile.
  const auto is_over = [&] {
    const auto found = part.map.find(Name{subject, hash});
    if (found == part.map.end() || (found->second.is_pending && !found->second.is_queued)) return true;
    if (found->second.is_pending) return false;
    waited = Waited::known;
    return true;
  };
  std::unique_lock lock(part.mutex);
  ++part.waiting;
  const bool ended = part.answered.wait_for(lock, most, is_over);
  --part.waiting;
  return ended ? waited : Waited::in_vain;
}

bool PlanCache::is_same(std::string_view subject, std::string_view text, Mark mark) {
  std::size_t hash = 0;
  Part& part = part_of(subject, hash);
  const std::lock_guard lock(part.mutex);
  const auto found = part.map.find(Name{subject, hash});
  if (found == part.map.end()) return false;
  Entry& entry = found->second;
  if (entry.is_pending || entry.text != text || entry.mark.era != mark.era) return false;
  entry.mark.reading = mark.reading;
  return true;
}

bool PlanCache::keep(std::string_view subject, std::string_view text, const KeptTerms* terms, Mark mark, Room room) {
  const std::string* const plan =
      terms == nullptr || terms->plan.empty() ? nullptr : &*names_.emplace(terms->plan).first;
  std::shared_ptr<const std::string> instead;
  if (terms != nullptr && !terms->instead.empty()) instead = std::make_shared<const std::string>(terms->instead);
  {
    std::size_t hash = 0;
    Part& part = part_of(subject, hash);
    const std::lock_guard lock(part.mutex);
    if (const auto found = part.map.find(Name{subject, hash}); found != part.map.end()) {
      Entry& entry = found->second;
      const bool was_pending = std::exchange(entry.is_pending, false);
      const bool has_changed = !was_pending && entry.text != text;
      part.leave(*found, entry.ring());
      entry.text = text;
      part.enter(*found);
      entry.is_queued = false;
      entry.mark = mark;
      if (terms != nullptr) {
        entry.plan = plan;
        entry.instead.swap(instead);
        entry.until = terms->until;
      }
      if (was_pending) pending_.fetch_sub(1, std::memory_order_relaxed);
      if (part.waiting > 0) part.answered.notify_all();
      return has_changed;
    }
  }
  if (text.empty() || (is_full() && room == Room::as_left)) return false;
  bool ignored = false;
  find(subject, ignored);
  keep(subject, text, terms, mark, Room::as_left);
  return false;
}

bool PlanCache::next(Walk& walk, std::size_t most, std::vector<Seen>& seen) const {
  const std::size_t enough = seen.size() + most;
  for (; walk.part < parts_.size(); ++walk.part, walk.ring = 0) {
    const Part& part = *parts_[walk.part];
    for (; walk.ring < kRings; ++walk.ring, walk.left = SIZE_MAX) {
      if (seen.size() >= enough) return true;
      const std::lock_guard lock(part.mutex);
      // Those without a row last: on their way to the others they are not lost, having just been answered for.
      const std::vector<Part::Node*>& ring = part.rings[kRings - 1 - walk.ring];
      walk.left = std::min(walk.left, ring.size());
      while (walk.left > 0 && seen.size() < enough) {
        const auto& [key, entry] = *ring[--walk.left];
        seen.push_back({key.text, entry.text, entry.mark, entry.asked, entry.is_pending});
      }
      if (walk.left > 0) return true;
    }
  }
  return false;
}

}  // namespace weir
