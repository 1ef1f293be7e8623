// See ring_log.h. The bits: in the narrow format, one event in the tag's upper 62 bits and one in the state's lower
// 62. In the wide format, the fourth event of three words uses the bits that the other three leave free.

#include "table/ring_log.h"

namespace weir::table {
namespace {

constexpr unsigned kNarrowBits = 31, kTimeBits = 52, kWideTotalBits = 42, kWideLowBits = 12;
constexpr std::uint64_t mask(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }
constexpr std::int64_t kNarrowPeriodMax_us = 1'800'000'000;

Unit& ring_unit(Line& block, std::int64_t i) { return (&block + 1 + i / 4)->units[i % 4]; }

std::uint64_t narrow_event(std::uint64_t time, std::uint64_t total) {
  return (time & mask(kNarrowBits)) | (total & mask(kNarrowBits)) << kNarrowBits;
}

// A third of the fourth event: 32 bits in each of the three words.
std::uint64_t share(std::uint64_t time, std::uint64_t total, int k) {
  return static_cast<std::uint64_t>((Bits{total} << kTimeBits | time) >> (32 * k)) & mask(32);
}

constexpr std::uint64_t kAll = ~std::uint64_t{0};

Patch share_patch(std::uint64_t time, std::uint64_t total, int k) {
  return {{mask(32), kAll}, {share(time, total, k) << 32, 0}};
}
Patch wide_patch(std::uint64_t time, std::uint64_t total) {
  return {{~mask(32), 0}, {(total >> kWideLowBits) << 2, time | (total & mask(kWideLowBits)) << kTimeBits}};
}
Patch narrow_patch(std::int64_t position, std::uint64_t event) {
  if (position % 2 == 0) return {{0, kAll}, {event << 2, 0}};
  return {{kAll, 0}, {0, event}};
}

}  // namespace

LogFormat log_format(const Limit& limit) {
  const bool narrow = limit.period_us <= kNarrowPeriodMax_us && limit.permits < std::int64_t{1} << kNarrowBits;
  return narrow ? LogFormat::narrow : LogFormat::wide;
}

std::int64_t log_capacity(unsigned block_class, LogFormat format) {
  const std::int64_t units = 4 * ((std::int64_t{1} << block_class) - 1);
  return format == LogFormat::narrow ? 2 * units : 4 * (units / 3);
}

unsigned log_class(std::int64_t events, LogFormat format) {
  unsigned block_class = 1;
  while (block_class < kClasses && log_capacity(block_class, format) < events) ++block_class;
  return block_class;
}

std::optional<RingLog> RingLog::read(Actor& actor, Line& block, const Word& state, unsigned block_class,
                                     LogFormat format) {
  RingLog log;
  const Bits bits = bits_of(state);
  log.actor_ = &actor;
  log.block_ = &block;
  log.format_ = format;
  log.capacity_ = log_capacity(block_class, format);
  log.size_ = static_cast<std::int64_t>(field(bits, 52, 17));
  log.first_ = static_cast<std::int64_t>(field(bits, 69, 17));
  if (format == LogFormat::narrow) {
    log.newest_us_ = static_cast<std::int64_t>(field(bits, 0, kTimeBits));
    log.base_ = field(bits, 86, kNarrowBits);
  } else {
    log.base_ = field(bits, 0, kWideTotalBits);
  }
  if (log.size_ > log.capacity_ || log.first_ >= log.capacity_) return {};
  return log;
}

Word RingLog::state() const {
  const Bits place = Bits{static_cast<std::uint64_t>(size_)} << 52 |
                     Bits{static_cast<std::uint64_t>(capacity_ > 0 ? first_ % capacity_ : 0)} << 69;
  if (format_ == LogFormat::wide) return word_of(place | (base_ & mask(kWideTotalBits)));
  const auto newest = static_cast<std::uint64_t>(size_ > 0 ? time(size_) : 0);
  return word_of(place | newest | Bits{base_ & mask(kNarrowBits)} << 86);
}

std::uint64_t RingLog::total_mask() const { return mask(format_ == LogFormat::narrow ? kNarrowBits : kWideTotalBits); }

const RingLog::Change* RingLog::change_of(std::int64_t i) const {
  const std::int64_t position = first_ + i - 1;
  for (std::size_t k = changed_; k > 0; --k) {
    if (changes_[k - 1].position == position) return &changes_[k - 1];
  }
  return nullptr;
}

std::int64_t RingLog::time(std::int64_t i) const {
  if (rewritten_) return rewritten_->time(i);
  const Change* change = change_of(i);
  return change != nullptr ? change->event.time_us : stored(first_ + i - 1).time_us;
}

std::int64_t RingLog::total(std::int64_t i) const {
  if (rewritten_) return rewritten_->total(i);
  if (const Change* change = change_of(i)) return static_cast<std::int64_t>(change->event.total - base_);
  return static_cast<std::int64_t>((stored(first_ + i - 1).total - base_) & total_mask());
}

RingLog::Event RingLog::stored(std::int64_t position) const {
  position %= capacity_;
  if (format_ == LogFormat::narrow) {
    const Word word = actor_->read(ring_unit(*block_, position / 2));
    const std::uint64_t event = position % 2 == 0 ? word.tag >> 2 : word.state;
    const std::uint64_t age = (static_cast<std::uint64_t>(newest_us_) - event) & mask(kNarrowBits);
    return {newest_us_ - static_cast<std::int64_t>(age), event >> kNarrowBits & mask(kNarrowBits)};
  }
  const std::int64_t group = position / 4 * 3, k = position % 4;
  if (k < 3) {
    const Word word = actor_->read(ring_unit(*block_, group + k));
    return {static_cast<std::int64_t>(word.state & mask(kTimeBits)),
            (word.tag >> 2 & mask(30)) << kWideLowBits | word.state >> kTimeBits};
  }
  Bits bits = 0;
  for (int part = 0; part < 3; ++part) {
    bits |= Bits{actor_->read(ring_unit(*block_, group + part)).tag >> 32} << (32 * part);
  }
  return {static_cast<std::int64_t>(field(bits, 0, kTimeBits)), field(bits, kTimeBits, kWideTotalBits)};
}

void RingLog::apply(const algorithm::LogRefund& refund) {
  if (!rewritten_) {
    algorithm::SlidingLog all;
    for (std::int64_t i = 1; i <= size_; ++i) all.apply(algorithm::LogEdit{0, i, time(i), total(i), 0});
    rewritten_ = std::move(all);
  }
  rewritten_->apply(refund);
}

void RingLog::apply(const algorithm::LogEdit& edit) {
  if (rewritten_) return rewritten_->apply(edit);
  if (edit.keep > edit.dead) {
    const bool same = edit.keep <= size_ && time(edit.keep) == edit.time_us && total(edit.keep) == edit.total;
    const std::uint64_t sum = base_ + static_cast<std::uint64_t>(edit.total);
    if (!same) changes_[changed_++ % kChangesMax] = {first_ + edit.keep - 1, {edit.time_us, sum}};
  }
  base_ += static_cast<std::uint64_t>(edit.base);
  first_ += edit.dead;
  size_ = edit.keep - edit.dead;
}

RingLog::Patches RingLog::patches() const {
  Patches patches;
  const auto add = [&](Patch patch, std::int64_t i) {
    patch.unit = &ring_unit(*block_, i);
    patches.all[patches.count++] = patch;
  };
  for (std::size_t i = 0; i < changed_; ++i) {
    const std::int64_t position = changes_[i].position % capacity_, k = position % 4;
    if (changes_[i].position < first_ || changes_[i].position >= first_ + size_) continue;  // removed since
    const auto time = static_cast<std::uint64_t>(changes_[i].event.time_us);
    const std::uint64_t total = changes_[i].event.total & total_mask();
    if (format_ == LogFormat::narrow) {
      add(narrow_patch(position, narrow_event(time, total)), position / 2);
    } else if (k < 3) {
      add(wide_patch(time, total), position / 4 * 3 + k);
    } else {
      for (int part = 0; part < 3; ++part) add(share_patch(time, total, part), position / 4 * 3 + part);
    }
  }
  return patches;
}

// The number of events too old for narrow times. They are left out, because no limit of a narrow log needs them.
std::int64_t RingLog::too_old(LogFormat format) const {
  if (format == LogFormat::wide || size() == 0) return 0;
  const std::int64_t newest = time(size());
  return algorithm::sliding_log_first(
             1, size(), [&](std::int64_t i) { return newest - time(i) < std::int64_t{1} << kNarrowBits; }) -
         1;
}

Word RingLog::copy(Actor& actor, Line& block, LogFormat format) const {
  const std::int64_t skipped = too_old(format), copied = size() - skipped;
  const std::int64_t base = skipped > 0 ? total(skipped) : this->base();
  RingLog to;
  to.format_ = format;
  to.capacity_ = to.size_ = copied;  // the copy begins at 0
  const std::int64_t in_turn = format == LogFormat::narrow ? 2 : 4;
  for (std::int64_t begin = 0; begin < copied; begin += in_turn) {
    Word words[3]{};
    for (std::int64_t position = begin; position < std::min(copied, begin + in_turn); ++position) {
      const auto event_time = static_cast<std::uint64_t>(time(skipped + position + 1));
      const auto event_total = static_cast<std::uint64_t>(total(skipped + position + 1) - base) & to.total_mask();
      if (format == LogFormat::narrow) {
        words[0] = narrow_patch(position, narrow_event(event_time, event_total))(words[0]);
      } else if (position % 4 < 3) {
        words[position % 4] = wide_patch(event_time, event_total)(words[position % 4]);
      } else {
        for (int k = 0; k < 3; ++k) words[k] = share_patch(event_time, event_total, k)(words[k]);
      }
    }
    if (format == LogFormat::narrow) {
      actor.put(ring_unit(block, begin / 2), words[0]);
    } else {
      for (int k = 0; k < 3; ++k) actor.put(ring_unit(block, begin / 4 * 3 + k), words[k]);
    }
  }
  if (copied > 0) to.changes_[to.changed_++] = {copied - 1, {time(size()), 0}};  // state() reads the newest time
  return to.state();
}

}  // namespace weir::table
