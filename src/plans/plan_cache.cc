// The parts of the map, their CLOCK rings, and eviction. See plan_cache.h.
#include "plans/plan_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <functional>
#include <map>
#include <random>
#include <utility>

#include "base/mutex.h"
#include "base/siphash.h"

namespace weir::plans {
namespace {

constexpr std::size_t kPartsMax = 1024;
constexpr std::size_t kSubjectsAPart = 256;  // with fewer, another part is not worth it
constexpr std::size_t kReservedMax = 4096;
constexpr int kChancesMax = 64;              // recently requested entries to skip before evicting one anyway
constexpr std::size_t kWithoutRowShare = 8;  // beyond an eighth, subjects without a row are evicted first

enum Ring : std::size_t { kWithoutRow, kWithRow, kRings };

// The members that find() reads share one cache line.
struct alignas(64) Entry {
  std::string subject{};
  const std::string* plan = nullptr;             // null: the default
  std::shared_ptr<const std::string> instead{};  // overrides the plan's quotas
  std::uint32_t asked = 0;
  bool is_pending = true, is_queued = false, was_asked = false;
  bool is_refused = false;  // the row in `text` was refused; the terms come from an earlier row

  Micros until{0};
  std::uint64_t hash = 0;
  std::string text{};  // the row as read, encoded by row_text()
  PlanCache::Mark mark{};
  std::size_t place = 0;  // its index in the ring

  Ring ring() const { return text.empty() ? kWithoutRow : kWithRow; }
};

// Finds entries by subject. Open addressing, at most half full, without deletion marks: a lookup reads one slot and
// one entry.
class Index {
 public:
  explicit Index(std::size_t entries) : slots_(std::bit_ceil(2 * entries + 2)) {}

  Entry* find(std::string_view subject, std::uint64_t hash) const {
    for (std::size_t i = home(hash); slots_[i].entry != nullptr; i = after(i)) {
      if (slots_[i].hash == hash && slots_[i].entry->subject == subject) return slots_[i].entry.get();
    }
    return nullptr;
  }

  Entry& add(std::unique_ptr<Entry> entry) {
    if (2 * (size_ + 1) > slots_.size()) {
      std::vector<Slot> before(2 * slots_.size());
      before.swap(slots_);
      for (Slot& slot : before) {
        if (slot.entry != nullptr) put(std::move(slot));
      }
    }
    ++size_;
    return put({entry->hash, std::move(entry)});
  }

  // Moves the entries behind the removed one forward, as far as their own place allows.
  void remove(const Entry& entry) {
    std::size_t hole = home(entry.hash);
    while (slots_[hole].entry.get() != &entry) hole = after(hole);
    slots_[hole] = {};
    --size_;
    for (std::size_t i = after(hole); slots_[i].entry != nullptr; i = after(i)) {
      const std::size_t wanted = home(slots_[i].hash), mask = slots_.size() - 1;
      if (((i - wanted) & mask) < ((i - hole) & mask)) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
  }

  std::size_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::unique_ptr<Entry> entry{};
  };
  std::size_t home(std::uint64_t hash) const { return hash & (slots_.size() - 1); }
  std::size_t after(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  Entry& put(Slot slot) {
    std::size_t i = home(slot.hash);
    while (slots_[i].entry != nullptr) i = after(i);
    slots_[i] = std::move(slot);
    return *slots_[i].entry;
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

std::uint64_t random_word() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

struct PlanCache::Part {
  explicit Part(std::size_t entries) : index(entries) {}

  mutable base::Mutex mutex;
  int waiting GUARDED_BY(mutex) = 0;
  Index index GUARDED_BY(mutex);
  std::array<std::vector<Entry*>, kRings> rings GUARDED_BY(mutex);
  std::array<std::size_t, kRings> hands GUARDED_BY(mutex){};
  std::condition_variable answered;
  // The last accepted texts of subjects whose current text is refused.
  std::map<std::string, std::string, std::less<>> accepted GUARDED_BY(mutex);

  // Records whether the new text is refused. Returns true if that changes what was accepted.
  bool check(Entry& entry, std::string_view text, bool is_accepted) REQUIRES(mutex) {
    if (!is_accepted && !entry.is_refused && !entry.text.empty()) accepted.emplace(entry.subject, entry.text);
    const bool was_refused = std::exchange(entry.is_refused, !is_accepted);
    if (is_accepted && was_refused) accepted.erase(entry.subject);
    return is_accepted && (was_refused || entry.text != text);
  }
  const std::string& accepted_of(const Entry& entry) const REQUIRES(mutex) {
    static const std::string kNothing;
    if (!entry.is_refused) return entry.text;
    const auto before = accepted.find(entry.subject);
    return before == accepted.end() ? kNothing : before->second;
  }

  void enter(Entry& entry) REQUIRES(mutex) {
    std::vector<Entry*>& ring = rings[entry.ring()];
    entry.place = ring.size();
    ring.push_back(&entry);
  }
  // The ring's last entry takes the free place, so a walk from the end to the beginning sees every entry.
  void leave(const Entry& entry) REQUIRES(mutex) {
    std::vector<Entry*>& ring = rings[entry.ring()];
    ring[entry.place] = ring.back();
    ring[entry.place]->place = entry.place;
    ring.pop_back();
  }
  Entry& to_push_out() REQUIRES(mutex) {
    const std::size_t without = rings[kWithoutRow].size();
    const Ring which = rings[kWithRow].empty() || without * kWithoutRowShare > index.size() ? kWithoutRow : kWithRow;
    std::vector<Entry*>& ring = rings[which];
    std::size_t& hand = hands[which];
    for (int chances = kChancesMax;; ++hand) {
      if (hand >= ring.size()) hand = 0;
      if (!ring[hand]->was_asked || --chances < 0) return *ring[hand];
      ring[hand]->was_asked = false;
    }
  }
};

PlanCache::PlanCache(std::size_t subjects_max)
    : subjects_max_(std::max<std::size_t>(subjects_max, 1)), secret_{random_word(), random_word()} {
  const std::size_t parts = std::clamp<std::size_t>(std::bit_floor(subjects_max_ / kSubjectsAPart), 1, kPartsMax);
  for (std::size_t i = 0; i < parts; ++i) {
    // Reserve memory now: later the index would grow under the lock.
    parts_.push_back(std::make_unique<Part>(std::min(subjects_max_ / parts * 5 / 4, kReservedMax)));
  }
}

PlanCache::~PlanCache() = default;

PlanCache::Place PlanCache::place_of(std::string_view subject) const {
  const base::Hash128 both = base::siphash13({secret_[0], secret_[1]}, subject);
  return {*parts_[both.high & (parts_.size() - 1)], both.low};
}

void PlanCache::push_one_out(Part& part) REQUIRES(part.mutex) {
  Entry& out = part.to_push_out();
  if (out.is_pending) pending_.fetch_sub(1, std::memory_order_relaxed);
  part.leave(out);
  if (out.is_refused) part.accepted.erase(out.subject);
  part.index.remove(out);
  size_.fetch_sub(1, std::memory_order_relaxed);
  evicted_.fetch_add(1, std::memory_order_relaxed);
}

PlanTerms PlanCache::find(std::string_view subject, bool& wants_lookup) {
  const auto [part, hash] = place_of(subject);
  const std::uint32_t tick = tick_.load(std::memory_order_relaxed);
  const base::MutexLock lock(part.mutex);
  Entry* const found = part.index.find(subject, hash);
  if (found == nullptr) {
    if (is_full() && part.index.size() > 0) push_one_out(part);
    auto made = std::make_unique<Entry>();
    made->subject = subject;
    made->hash = hash;
    made->is_queued = true;
    made->asked = tick;
    part.enter(part.index.add(std::move(made)));
    size_.fetch_add(1, std::memory_order_relaxed);
    pending_.fetch_add(1, std::memory_order_relaxed);
    wants_lookup = true;
    return {.is_pending = true};
  }
  found->was_asked = true;
  found->asked = tick;
  wants_lookup = found->is_pending && !found->is_queued;
  if (wants_lookup) found->is_queued = true;
  PlanTerms terms{.is_pending = found->is_pending};
  if (found->plan != nullptr) terms.plan = *found->plan;
  if (found->instead != nullptr) {
    terms.limits = found->instead;
    terms.until = found->until;
  }
  return terms;
}

void PlanCache::not_queued(std::string_view subject) {
  const auto [part, hash] = place_of(subject);
  const base::MutexLock lock(part.mutex);
  if (Entry* const found = part.index.find(subject, hash)) found->is_queued = false;
}

PlanCache::Waited PlanCache::wait(std::string_view subject, Micros most) {
  const Place at = place_of(subject);
  Waited waited = Waited::not_at_all;
  // Look up again each time, because the subject may be evicted while we wait.
  const auto is_over = [&]() REQUIRES(at.part.mutex) {
    const Entry* const found = at.part.index.find(subject, at.hash);
    if (found == nullptr || (found->is_pending && !found->is_queued)) return true;
    if (found->is_pending) return false;
    waited = Waited::known;
    return true;
  };
  base::MutexLock lock(at.part.mutex);
  ++at.part.waiting;
  const bool ended = at.part.answered.wait_for(lock, most, is_over);
  --at.part.waiting;
  return ended ? waited : Waited::timed_out;
}

bool PlanCache::is_same(std::string_view subject, std::string_view text, Mark mark) {
  const auto [part, hash] = place_of(subject);
  const base::MutexLock lock(part.mutex);
  Entry* const found = part.index.find(subject, hash);
  if (found == nullptr || found->is_pending || found->text != text || found->mark.era != mark.era) return false;
  found->mark.reading = mark.reading;
  return true;
}

bool PlanCache::keep(std::string_view subject, std::string_view text, const KeptTerms* terms, Mark mark,
                     WhenFull then) {
  const std::string* const plan =
      terms == nullptr || terms->plan.empty() ? nullptr : &*names_.emplace(terms->plan).first;
  std::shared_ptr<const std::string> instead;
  if (terms != nullptr && !terms->instead.empty()) instead = std::make_shared<const std::string>(terms->instead);
  {
    const auto [part, hash] = place_of(subject);
    const base::MutexLock lock(part.mutex);
    if (Entry* const found = part.index.find(subject, hash)) {
      Entry& entry = *found;
      if (part.check(entry, text, terms != nullptr)) edits_.fetch_add(1, std::memory_order_relaxed);
      const bool was_pending = std::exchange(entry.is_pending, false);
      const bool has_changed = !was_pending && entry.text != text;
      part.leave(entry);
      entry.text = text;
      part.enter(entry);
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
  if (text.empty() || (is_full() && then == WhenFull::skip)) return false;
  bool ignored = false;
  find(subject, ignored);
  keep(subject, text, terms, mark, WhenFull::skip);
  return false;
}

bool PlanCache::next(Walk& walk, std::size_t most, std::vector<Seen>& seen) const {
  const std::size_t enough = seen.size() + most;
  for (; walk.part < parts_.size(); ++walk.part, walk.ring = 0) {
    const Part& part = *parts_[walk.part];
    for (; walk.ring < kRings; ++walk.ring, walk.left = SIZE_MAX) {
      if (seen.size() >= enough) return true;
      const base::MutexLock lock(part.mutex);
      // Walk subjects with a row first. One that gains a row meanwhile may be missed, but it was just looked up.
      const std::vector<Entry*>& ring = part.rings[kRings - 1 - walk.ring];
      walk.left = std::min(walk.left, ring.size());
      while (walk.left > 0 && seen.size() < enough) {
        const Entry& entry = *ring[--walk.left];
        seen.push_back({entry.subject, entry.text, part.accepted_of(entry), entry.mark, entry.asked, entry.is_pending});
      }
      if (walk.left > 0) return true;
    }
  }
  return false;
}

}  // namespace weir::plans
