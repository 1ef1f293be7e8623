// See floor.h. A summary is 42 bits of time, in steps of 1,024 us, and a count as 17 bits and a shift.

#include "table/floor.h"

#include <algorithm>

namespace weir::table {
namespace {

using algorithm::fixed_window_end;
using algorithm::FixedWindow;

constexpr unsigned kTickShift = 10, kCountAt = 42, kMantissaBits = 17;
constexpr std::uint64_t kTicksMax = (std::uint64_t{1} << kCountAt) - 1;
constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << kMantissaBits) - 1;

Summary summary_of(const RingLog& log) {
  if (log.size() == 0) return {};
  return {log.time(log.size()), log.total(log.size()) - log.base()};
}

// Both are in effect: the one that ends later, with the higher count.
FixedWindow join_windows(const FixedWindow& a, const Limit& a_limit, const FixedWindow& b, const Limit& b_limit,
                         std::int64_t now) {
  const std::int64_t a_end = fixed_window_end(a, a_limit, now), b_end = fixed_window_end(b, b_limit, now);
  const bool is_a = a_end != b_end ? a_end > b_end : a.end_us > b.end_us;
  return {is_a ? a.end_us : b.end_us, std::max(a.count, b.count)};
}

algorithm::CompactLog counts_of(const TableCell& cell, std::int64_t now) {
  if (const auto* counts = std::get_if<algorithm::CompactLog>(&cell.state())) return *counts;
  return algorithm::compact_log_of(std::get<RingLog>(cell.state()), cell.limit().period_us, now);
}

}  // namespace

std::uint64_t pack_summary(const Summary& summary, bool is_fixed_window) {
  if (summary.count <= 0) return 0;
  auto mantissa = static_cast<std::uint64_t>(summary.count);
  std::uint64_t shift = 0;
  while (mantissa > kMantissaMask) {
    mantissa = (mantissa + 1) >> 1;
    ++shift;
  }
  const auto at = static_cast<std::uint64_t>(summary.at_us);
  const std::uint64_t ticks = is_fixed_window ? at >> kTickShift : (at + (1u << kTickShift) - 1) >> kTickShift;
  return std::min(ticks, kTicksMax) | (mantissa | shift << kMantissaBits) << kCountAt;
}

Summary unpack_summary(std::uint64_t packed) {
  const std::uint64_t count = packed >> kCountAt;
  return {static_cast<std::int64_t>((packed & kTicksMax) << kTickShift),
          static_cast<std::int64_t>((count & kMantissaMask) << (count >> kMantissaBits))};
}

std::uint64_t join(const Known& known, std::uint64_t a, std::uint64_t b, std::int64_t now) {
  if (a == 0 || b == 0) return a | b;
  if (!known.packing.fits_slot) {
    constexpr std::uint64_t kCounts = ~kTicksMax;
    return std::max(a & kTicksMax, b & kTicksMax) | std::max(a & kCounts, b & kCounts);
  }
  // If one window is later than the other, the other has ended. A bucket's word rises with what is used.
  const Packing& packing = known.packing;
  if (packing.kind == Kind::compact) {
    const algorithm::CompactLog joint = weir::algorithm::join(unpack_compact(a, packing), unpack_compact(b, packing));
    return static_cast<std::uint64_t>(pack(joint, packing));
  }
  if (packing.kind == Kind::fixed && is_of_corrected_calendar(known.limit)) {
    const FixedWindow joint =
        join_windows(unpack_fixed(a, packing), known.limit, unpack_fixed(b, packing), known.limit, now);
    return static_cast<std::uint64_t>(pack(joint, packing));
  }
  if (packing.kind != Kind::sliding) return std::max(a, b);
  return static_cast<std::uint64_t>(
      pack(weir::algorithm::join(unpack_sliding(a, packing), unpack_sliding(b, packing)), packing));
}

std::optional<std::uint64_t> floor_over(SlotReader& reader, const Known& known, const Word& slot, std::int64_t now) {
  if (known.packing.fits_slot) return slot.state;
  const auto content = reader.read(slot);
  if (!content) return {};
  const TableCell::State& state = content->cell.state();
  if (const auto* fixed = std::get_if<algorithm::FixedWindow>(&state)) {
    return pack_summary({std::max<std::int64_t>(0, fixed->end_us - 1), fixed->count}, true);
  }
  if (const auto* sliding = std::get_if<algorithm::SlidingWindow>(&state)) {
    const std::int64_t period = known.limit.period_us, at = std::max(now, sliding->window * period);
    return pack_summary({at, used_of(*sliding, period, at)}, false);
  }
  if (const auto* log = std::get_if<RingLog>(&state)) return pack_summary(summary_of(*log), false);
  return {};
}

TableCell join_cells(const TableCell& a, const TableCell& b, std::int64_t now) {
  const Limit& limit = a.limit().permits >= b.limit().permits ? a.limit() : b.limit();
  if (const auto* fixed = std::get_if<algorithm::FixedWindow>(&a.state())) {
    const auto& other = std::get<algorithm::FixedWindow>(b.state());
    if (is_of_corrected_calendar(limit)) {
      const bool is_a_over = fixed_window_end(*fixed, a.limit(), now) <= now;
      if (is_a_over || fixed_window_end(other, b.limit(), now) <= now) return is_a_over ? b : a;
      return {limit, join_windows(*fixed, a.limit(), other, b.limit(), now)};
    }
    if (fixed->end_us != other.end_us) return fixed->end_us > other.end_us ? a : b;
    return {limit, algorithm::FixedWindow{fixed->end_us, std::max(fixed->count, other.count)}};
  }
  if (const auto* sliding = std::get_if<algorithm::SlidingWindow>(&a.state())) {
    return {limit, weir::algorithm::join(*sliding, std::get<algorithm::SlidingWindow>(b.state()))};
  }
  if (kind_of(limit.algorithm) == Kind::log) {
    const auto *x_log = std::get_if<RingLog>(&a.state()), *y_log = std::get_if<RingLog>(&b.state());
    // Counts do not say when they were charged, and `now` may be earlier than that. So only counts cover them.
    if (x_log == nullptr || y_log == nullptr)
      return {limit, weir::algorithm::join(counts_of(a, now), counts_of(b, now))};
    const Summary x = summary_of(*x_log), y = summary_of(*y_log);
    TableCell cell(limit);
    const std::int64_t count = std::min(std::max(x.count, y.count), limit.permits);
    if (count > 0) cell.commit(limit, cell.decide(std::max(x.at_us, y.at_us), count));
    return cell;
  }
  // Of two buckets, the one that is further from full, in permits.
  const auto debt = [now](const TableCell& cell) {
    return Bits{algorithm::bucket_debt(std::get<algorithm::Bucket>(cell.state()), cell.limit().rate, now)};
  };
  const auto weight = [](const TableCell& cell) { return static_cast<std::uint64_t>(cell.limit().weight); };
  return debt(a) * weight(b) >= debt(b) * weight(a) ? a : b;
}

}  // namespace weir::table
