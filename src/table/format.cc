// The bytes of a fresh table, and the order in which the header of an existing one is checked. See format.h.

#include "table/format.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "base/fnv.h"
#include "table/arena.h"

namespace weir::table {
namespace {

constexpr std::uint64_t kArenaBytesMin = 64 * 1024;
constexpr std::uint64_t kArenaBytesOfKey = 32;
constexpr std::uint32_t kRegistryEntries = kLimitsMax + 4;
constexpr std::int64_t kTenYears = 315'576'000'000'000;
constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kShiftMin = 2 * kSecond;
constexpr std::int64_t kSlack = 60'000'000;  // a reading may be this much older than the table's latest time

bool is_time(std::int64_t us) { return us > 0 && us < kTimeEnd; }

// The sum wraps, because an offset from a damaged file may be anything.
std::int64_t time_of(const Header& header, const ClockReading& reading) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(reading.boot_us) +
                                   static_cast<std::uint64_t>(header.clock_offset_us));
}

// Processes of one boot share a boot clock if they share this. 0 if the system does not provide it.
std::uint64_t time_namespace() {
  struct stat info {};
  return stat("/proc/self/ns/time", &info) == 0 ? info.st_ino : 0;
}

// Clamped, because a damaged file may contain anything.
std::int64_t wall_ahead_of(const Header& header) {
  const std::int64_t ahead = __atomic_load_n(&header.wall_ahead_us, __ATOMIC_RELAXED);
  return std::clamp<std::int64_t>(ahead, -kTimeEnd, kTimeEnd);
}

// Whether somebody has set the wall clock. One that is behind the creation of the file may never have been set since
// the machine started; or it was ahead when the file was made, and has been set back. Then it was set since the last
// look, or calendars follow such a clock already.
bool is_set(const Header& header, const ClockReading& reading, std::int64_t ahead, std::int64_t followed_us) {
  return reading.wall_us >= header.created_us || std::abs(ahead - wall_ahead_of(header)) > kShiftMin ||
         reading.wall_us - ahead + followed_us < header.created_us;
}

// Calendars follow the wall clock if it is off by more than the difference between readings. `last_us` is the latest
// time at which calendars were read. A kill may come at any point, so what reveals the correction is stored last.
void note_wall_clock(Header& header, const ClockReading& reading, std::int64_t last_us) {
  const std::int64_t time = time_of(header, reading);
  const std::int64_t ahead = reading.wall_us - time;
  const auto shift = calendar_shift(header).value_or(algorithm::CalendarShift{});
  const std::int64_t rounded = (ahead + (ahead < 0 ? -kSecond : kSecond) / 2) / kSecond * kSecond;
  const std::int64_t seconds = std::clamp<std::int64_t>(rounded, -kTimeEnd, kTimeEnd);  // as it is read
  if (std::abs(seconds - shift.now_us) > kShiftMin && is_set(header, reading, ahead, shift.now_us)) {
    using Words = std::array<std::int64_t, algorithm::kCalendarShiftWords>;
    const auto next = std::bit_cast<Words>(algorithm::corrected(shift, seconds, time, last_us));
    const std::uint64_t corrections = load(header.calendar_shift);
    // A reader that sees a word of the next shift also sees the number of this one, and so reads again.
    for (std::size_t i = 0; i < next.size(); ++i) {
      __atomic_store_n(&header.calendar_shifts[corrections % 2][i], next[i], __ATOMIC_RELEASE);
    }
    store(header.calendar_shift, corrections + 1);
  }
  __atomic_store_n(&header.wall_ahead_us, ahead, __ATOMIC_RELAXED);
}

auto refuse(std::string message) { return fail(ErrorCode::unavailable, std::move(message)); }

bool has_our_layout(const Header& header) {
  return header.header_bytes == kHeaderBytes && header.registry_entries == kRegistryEntries &&
         header.participants == kParticipants && header.participant_bytes == sizeof(Participant) &&
         header.entry_bytes == sizeof(RegistryEntry);
}

bool is_possible(const Header& header) {
  const auto within = [](std::uint64_t value, std::uint64_t low, std::uint64_t high) {
    return low <= value && value <= high;
  };
  return within(header.pages, 1, kPagesMax) && within(header.base_pages, 1, kPagesMax) &&
         within(header.arena_lines, 1, kArenaLinesMax) && header.pages / header.base_pages <= kGrowthMax &&
         header.bytes == layout_of(header.pages, header.arena_lines).bytes;
}

}  // namespace

Result<Geometry> geometry_for(std::uint64_t keys, std::uint64_t arena_bytes) {
  if (keys == 0) keys = kKeysDefault;
  if (keys > keys_of(kPagesMax)) {
    return fail(ErrorCode::out_of_range,
                std::to_string(keys) + " keys: a table has at most " + std::to_string(keys_of(kPagesMax)));
  }
  if (arena_bytes > kArenaLinesMax * sizeof(Line)) {
    return fail(ErrorCode::out_of_range, std::to_string(arena_bytes) + " bytes for logs: at most " +
                                             std::to_string(kArenaLinesMax * sizeof(Line)) + " are possible");
  }
  if (arena_bytes == 0) arena_bytes = std::min(kArenaBytesOfKey * keys, kArenaLinesMax * sizeof(Line));
  const std::uint64_t pages = round_up(keys, kKeysInPage) / kKeysInPage;
  return Geometry{pages, pages, round_up(std::max(arena_bytes, kArenaBytesMin), sizeof(Line)) / sizeof(Line)};
}

Result<Geometry> fit_into(std::uint64_t memory, std::uint64_t keys, std::uint64_t arena_bytes) {
  if (keys != 0 && arena_bytes != 0) {
    return fail(ErrorCode::invalid_argument,
                "set at most two of these: the number of keys, the bytes for logs, the bytes in total");
  }
  const auto with = [&](std::uint64_t value) {
    return keys != 0 ? geometry_for(keys, value) : geometry_for(value, arena_bytes);
  };
  const auto bytes_of = [](const Geometry& geometry) { return layout_of(geometry.pages, geometry.arena_lines).bytes; };
  const auto least = with(1);
  if (!least) return least;
  if (bytes_of(*least) > memory) {
    return fail(ErrorCode::out_of_range,
                std::to_string(memory) + " bytes are too few: the minimum is " + std::to_string(bytes_of(*least)));
  }
  std::uint64_t low = 1, high = keys != 0 ? kArenaLinesMax * sizeof(Line) : keys_of(kPagesMax);
  while (low < high) {
    const std::uint64_t middle = high - (high - low) / 2;
    if (bytes_of(with(middle).value()) <= memory) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return with(low);
}

void format(const Region& region, const Geometry& geometry, const Identity& identity, const ClockReading& reading) {
  Header& header = region.header();
  header.magic = kMagic;
  header.version = kVersion;
  header.header_bytes = kHeaderBytes;
  header.bytes = region.bytes();
  header.pages = geometry.pages;
  header.base_pages = geometry.base_pages;
  header.arena_lines = geometry.arena_lines;
  header.registry_entries = kRegistryEntries;
  header.participants = kParticipants;
  header.participant_bytes = sizeof(Participant);
  header.entry_bytes = sizeof(RegistryEntry);
  std::copy(identity.hash_key.begin(), identity.hash_key.end(), header.hash_key);
  header.created_us = identity.created_us;
  header.checksum = checksum_of(header);
  set_clock(header, reading);
  header.clean = kClean;
  set_free(region, 0, region.arena_lines());
}

std::int64_t clock_offset_us(const ClockReading& reading, std::int64_t latest_us) {
  std::int64_t start = std::clamp<std::int64_t>(reading.wall_us, 1, kTimeEnd - 1);
  if (is_time(latest_us) && (start < latest_us || start - latest_us > kTenYears)) start = latest_us;
  return start - reading.boot_us;
}

bool keeps_time(const Header& header, const ClockReading& reading) {
  if (reading.boot_id == std::array<std::uint64_t, 2>{}) return false;
  if (!std::equal(reading.boot_id.begin(), reading.boot_id.end(), header.boot_id)) return false;
  const std::int64_t time = time_of(header, reading);
  if (!is_time(time)) return false;
  if (!is_time(header.latest_us)) return true;
  // The clock may not have been read for long, so it may be ahead of the latest time. But in another time namespace,
  // the wall clock must have advanced, too.
  const std::int64_t latest = header.latest_us, by_wall = reading.wall_us - wall_ahead_of(header);
  const bool is_same = header.time_namespace != 0 && header.time_namespace == time_namespace();
  return time > latest - kSlack && (is_same || time < latest + kSlack || time < by_wall + kSlack);
}

void note_wall_clock(Header& header, const ClockReading& reading) {
  note_wall_clock(header, reading, time_of(header, reading));
}

// While a reader is suspended, the wall clock may be corrected twice, and its words are overwritten.
std::optional<algorithm::CalendarShift> calendar_shift(const Header& header) {
  static_assert(algorithm::kCalendarShiftWords == std::size(Header{}.calendar_shifts[0]));
  std::array<std::int64_t, algorithm::kCalendarShiftWords> words;
  for (std::uint64_t seen = load(header.calendar_shift); seen != 0;) {
    std::ranges::transform(header.calendar_shifts[(seen - 1) % 2], words.begin(), [](const std::int64_t& word) {
      // A damaged file may contain anything.
      return std::clamp<std::int64_t>(__atomic_load_n(&word, __ATOMIC_ACQUIRE), -kTimeEnd, kTimeEnd);
    });
    const std::uint64_t again = load(header.calendar_shift);
    if (again == seen) return std::bit_cast<algorithm::CalendarShift>(words);
    seen = again;
  }
  return {};
}

std::int64_t time_at(const Header& header, const ClockReading& reading) {
  if (keeps_time(header, reading)) return time_of(header, reading);
  return reading.boot_us + clock_offset_us(reading, header.latest_us);
}

void set_clock(Header& header, const ClockReading& reading) {
  const std::int64_t last = std::clamp<std::int64_t>(header.latest_us, 0, kTimeEnd - 1);
  header.clock_offset_us = clock_offset_us(reading, header.latest_us);
  header.time_namespace = time_namespace();
  header.wall_ahead_us = reading.wall_us - time_of(header, reading);  // not set since the machine started
  note_wall_clock(header, reading, last);
  header.latest_us = time_of(header, reading);  // after a kill before this, all of it is done again
  std::copy(reading.boot_id.begin(), reading.boot_id.end(), header.boot_id);
}

std::uint64_t checksum_of(const Header& header) {
  char bytes[offsetof(Header, checksum)];
  std::memcpy(bytes, &header, sizeof(bytes));
  return base::fnv1a_64({bytes, sizeof(bytes)});
}

Result<Geometry> check_header(const Header& header, std::uint64_t file_bytes, std::uint32_t oldest) {
  if (file_bytes == 0) return refuse("is empty; remove it, and Weir creates a new one");
  if (header.magic != kMagic)
    return refuse("is not a state file of Weir; name another file, or one that does not exist yet");
  if (header.version > kVersion) {
    return refuse("was created by a newer Weir (layout " + std::to_string(header.version) +
                  "; this version knows layouts up to " + std::to_string(kVersion) +
                  "); use that version of Weir, or another file");
  }
  if (header.checksum != checksum_of(header)) {
    return refuse("has a damaged header (its checksum is wrong); restore it, or remove it and start with a new file");
  }
  if (header.version < oldest) {
    return refuse("was created by an older Weir (layout " + std::to_string(header.version) +
                  "; this version reads layouts from " + std::to_string(oldest) +
                  " on); open it once with a release between the two, or start with a new file");
  }
  if (!has_our_layout(header) || !is_possible(header)) {
    return refuse("has a different layout from this build of Weir; use the build that created it, or another file");
  }
  if (file_bytes < header.bytes) {
    return refuse("is truncated: " + std::to_string(file_bytes) + " bytes of " + std::to_string(header.bytes) +
                  "; restore it, or remove it and start with a new file");
  }
  return Geometry{header.pages, header.base_pages, header.arena_lines};
}

}  // namespace weir::table
