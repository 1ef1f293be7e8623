// The layout of a table, byte by byte: the same in memory and in a file. NEVER CHANGE A FIELD without raising
// kVersion and teaching take_over.h how to convert the previous version.
//
// A table is one region of fixed size: a header, the registry of limits, the participants, the pages of slots, the
// arena of blocks. It has offsets and no pointers, because several processes map it at different addresses. Keys are
// not stored, only 50 bits of their keyed hash. The page and those bits together identify a key. Tested by
// layout_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "table/word.h"
#include "weir/verdict.h"

namespace weir::table {

inline constexpr std::uint64_t kMagic = 0x0a656c6261742057;  // "W table\n"
inline constexpr std::uint32_t kVersion = 2;
inline constexpr std::uint32_t kVersionOldest = 1;  // take_over() converts files of this version and later

// The tag of a slot: mark (2 bits), limit (12 bits), fingerprint (50 bits). 0 is an empty slot.
inline constexpr unsigned kLimitShift = 2, kNameShift = 14;
inline constexpr std::uint64_t kLimitBits = 0xfff;
inline constexpr std::uint64_t kNameMask = ~std::uint64_t{0} << kNameShift;

inline std::uint64_t name_of(std::uint64_t tag) { return tag & kNameMask; }
inline std::uint32_t limit_of(std::uint64_t tag) { return static_cast<std::uint32_t>(tag >> kLimitShift & kLimitBits); }
inline std::uint64_t tag_of(std::uint64_t name, std::uint32_t limit) {
  return name | std::uint64_t{limit} << kLimitShift;
}

// Limits are numbered from 1. The highest numbers mean that a slot is something else.
inline constexpr std::uint32_t kLimitsMax = 4092;    // 1 to 4092
inline constexpr std::uint32_t kReservation = 4093;  // amount and end of a reservation
inline constexpr std::uint32_t kRequest = 4094;      // end of an idempotency id
inline constexpr std::uint32_t kInBlock = 4095;      // the limit is in the slot's block

// How many of the numbers are used: all of them, except in tests that choose schedules. Half of them may go to limits
// that no rule names. The other half is reserved for rules.
#ifndef WEIR_TABLE_LIMITS
#define WEIR_TABLE_LIMITS kLimitsMax
#endif
inline std::uint32_t limits_max() { return WEIR_TABLE_LIMITS; }
inline std::uint32_t ad_hoc_max() { return limits_max() / 2; }

inline constexpr std::uint32_t kLines = 63, kSlotsInLine = 4;
inline constexpr std::uint32_t kSlots = kLines * kSlotsInLine;

// 4 KiB. The version changes with every insertion. Its state has a bit for each line that a key had to walk past, and
// kFull if an insertion or the sweep saw no empty slot. Floors record how much the keys that the page has evicted had
// used (floor.h). The first floors are beside the version, others in slots.
struct alignas(64) Page {
  Unit version;
  Unit floors[3];
  Unit slots[kLines][kSlotsInLine];
};
static_assert(sizeof(Page) == 4096);
inline std::span<Unit, kSlots> slots_of(Page& page) { return std::span<Unit, kSlots>(&page.slots[0][0], kSlots); }

inline constexpr std::uint64_t kFull = std::uint64_t{1} << kLines;
static_assert(kLines < 64);

// The tag of a page's version: a number that every insertion changes; whether a slot may contain a floor; upper
// bounds on how many slots have permits in flight or limits without a number, and on how many have tickets. None of
// these is ever evicted.
inline constexpr unsigned kFloorInSlotShift = 47, kHeldShift = 48, kTicketsShift = 56;
inline constexpr std::uint64_t kFloorInSlot = std::uint64_t{1} << kFloorInSlotShift;
inline constexpr std::uint64_t kVersionMask = kFloorInSlot - 4;  // of the number
inline constexpr std::uint64_t kHeldMax = kSlots / 2, kTicketsMax = kSlots / 4;

inline std::uint64_t next_version(std::uint64_t tag) { return (tag & ~kVersionMask) | ((tag + 4) & kVersionMask); }
inline std::uint64_t held_in(std::uint64_t version_tag) { return version_tag >> kHeldShift & 0xff; }
inline std::uint64_t tickets_in(std::uint64_t version_tag) { return version_tag >> kTicketsShift; }
inline std::uint64_t with_counts(std::uint64_t version_tag, std::uint64_t held, std::uint64_t tickets) {
  constexpr std::uint64_t kMost = 0xff;
  const std::uint64_t rest = version_tag & ((std::uint64_t{1} << kHeldShift) - 1);
  return rest | (held < kMost ? held : kMost) << kHeldShift | (tickets < kMost ? tickets : kMost) << kTicketsShift;
}

// One change of an operation.
struct Entry {
  std::uint64_t unit;  // its number in the region
  Word old, next;
};

inline constexpr std::uint32_t kParticipants = 256;
inline constexpr auto kChargesMax = static_cast<std::uint32_t>(weir::kChargesMax);  // of a verdict
inline constexpr std::uint32_t kPendings = kChargesMax + 1;
inline constexpr std::uint32_t kSweepPending = kChargesMax;  // the one that a sweep uses
inline constexpr std::uint32_t kEntriesMax = 320;            // 32 charges of at most 9, and what comes with them

enum Status : std::uint64_t { kSolo = 0, kHelp = 1, kDone = 2, kFailed = 3, kStatusBits = 3 };

// A thread that works in the table; one thread at a time. The record is reused. The number in `status` distinguishes
// one operation from the next.
struct alignas(64) Participant {
  std::uint64_t status;                      // number << 2 | Status
  std::uint64_t count;                       // of entries
  std::uint64_t keys;                        // added here, minus those removed
  std::uint64_t active;                      // see active_word()
  std::uint64_t writing;                     // the registry entry being written; 0: none
  std::uint64_t early;                       // new keys denied because of what evicted keys had used
  std::uint64_t no_room;                     // requests denied for lack of capacity
  std::uint64_t compacted;                   // logs converted to two counts for lack of a block; 0 in older files
  alignas(64) std::uint64_t install_number;  // the conditional install of this participant, one at a time
  std::uint64_t install_unit, install_old, install_held;
  alignas(64) Unit tally;   // keys evicted before they expired << 2
  Unit pending[kPendings];  // blocks with no other owner: class << 2; line
  alignas(64) Entry entries[kEntriesMax];
};

// Which process has a record, and the epoch of the limits since which a thread works there. The claim changes with
// the process, so a thread that is about to use a record that its process has released notices.
inline constexpr unsigned kClaimShift = 40;
inline constexpr std::uint64_t kClaimMask = 0xffffff;
constexpr std::uint64_t idle_word(std::uint64_t claim) { return claim << kClaimShift; }
constexpr std::uint64_t active_word(std::uint64_t claim, std::uint64_t epoch) {
  return claim << kClaimShift | (epoch << 1 & ((std::uint64_t{1} << kClaimShift) - 1)) | 1;
}
constexpr std::uint64_t claim_of(std::uint64_t active) { return active >> kClaimShift; }
constexpr bool is_at_work(std::uint64_t active) { return (active & 1) != 0; }
constexpr std::uint64_t epoch_of(std::uint64_t active) {
  return (active & ((std::uint64_t{1} << kClaimShift) - 1)) >> 1;
}

// A block: 2^class consecutive 64-byte lines of the arena, beginning at a multiple of that. The first line is its
// head.
struct alignas(64) Line {
  Unit units[4];
};
enum HeadUnit { kParameters0 = 0, kParameters1 = 1, kState0 = 2, kState1 = 3 };
inline constexpr unsigned kClasses = 15;  // up to 1 MiB
inline constexpr std::uint64_t kHandleBits = 28;

// Each class has a map of its free blocks: 64 of them in the state of a unit.
inline constexpr std::uint64_t kBlocksInUnit = 64;
constexpr std::uint64_t map_units(std::uint64_t arena_lines, unsigned block_class) {
  return ((arena_lines >> block_class) + kBlocksInUnit - 1) / kBlocksInUnit;
}

// Where the windows of a limit begin, as stored in its registry entry.
enum Windows : std::uint8_t {
  kByPeriod = 0,    // multiples of the period; the zone may contain anything
  kByCalendar = 1,  // the midnights of a zone
  kByPhase = 2,     // multiples of the period, plus a phase: the first 8 bytes of the zone
  // Multiples of the period, and the states of this number are logs in two counts (pack.h). A program that does not
  // know this value finds no limit under the number. Such keys are unreadable to it: they fail instead of being
  // decided as something else, and a repair drops them.
  kCompact = 3,
};

// A limit that slots refer to by number. The tag of `guard` is generation << 8 | GuardState << 2. The generation
// rises when the number is reused.
enum GuardState : std::uint64_t {
  kFree = 0,
  kWriting = 1,  // guard.state: the participant
  kReady = 2,    // guard.state: the hash of the limit
  kClosing = 3,  // as ready, but no new key gets it, while the sweep finds out whether any slot uses it
  kResting = 4,  // no slot uses it; free once no transaction is left that may have seen it
};
inline constexpr unsigned kGenerationShift = 8;
inline constexpr std::uint64_t guard_tag(GuardState state, std::uint64_t generation) {
  return generation << kGenerationShift | state << 2;
}
inline GuardState state_of(const Word& guard) { return static_cast<GuardState>(guard.tag >> 2 & 7); }
inline std::uint64_t generation_of(const Word& guard) { return guard.tag >> kGenerationShift; }

inline constexpr std::size_t kZoneMax = 52;  // bytes of the name of a zone

struct alignas(64) RegistryEntry {
  Unit guard;
  std::int64_t permits, period_us, capacity, rate, weight, events_max;
  std::uint8_t algorithm, calendar_unit, windows, zone_bytes;
  char zone[kZoneMax];
  std::uint64_t family;  // see weir::Charge
};
static_assert(sizeof(RegistryEntry) == 128);

// NumberSet, note_numbers()
//
// NumberSet has a bit for each number of a limit. note_numbers() adds the numbers that a word of a page refers to;
// the word must have no operation in it. Every number that a page keeps anywhere must be seen here, or the number is
// reused while it is in use.
struct NumberSet {
  std::uint64_t bits[(kLimitBits + 1) / 64] = {};
  void add(std::uint32_t number) { bits[number / 64] |= std::uint64_t{1} << number % 64; }
  bool has(std::uint32_t number) const { return (bits[number / 64] >> number % 64 & 1) != 0; }
};
inline void note_numbers(const Word& word, NumberSet& numbers) { numbers.add(limit_of(word.tag)); }

// The state in which the last user has left a table.
enum Condition : std::uint64_t {
  kInUse = 0,    // or killed
  kClean = 1,    // closed
  kTorn = 2,     // the machine crashed, and no repair has completed since
  kDamaged = 3,  // a user has found contents that make no sense
};

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_bytes;  // sizes at the time the file was made
  std::uint64_t bytes;         // of the whole region
  std::uint64_t pages;
  std::uint64_t base_pages;  // when the table was made; see page_of()
  std::uint64_t arena_lines;
  std::uint32_t registry_entries, participants;
  std::uint32_t participant_bytes, entry_bytes;
  std::uint64_t hash_key[2];  // secret
  std::int64_t created_us;
  std::uint64_t checksum;  // of all fields above
  // The rest changes while the table is in use.
  alignas(64) std::uint64_t boot_id[2];
  std::int64_t clock_offset_us;  // wall clock - boot clock, for all processes
  std::int64_t latest_us;        // a time that was read; about a second behind the latest
  std::uint64_t clean;           // a Condition
  std::int64_t wall_ahead_us;    // wall clock - time of the table, at the last check; 0 in older files
  std::uint64_t time_namespace;  // of the process that set the clock; 0: unknown
  alignas(64) std::uint64_t sweep_page, reclaim_page;
  std::uint64_t swept;                     // expired keys that the sweep removed
  std::uint64_t reclaim_at_us;             // no reclaiming of expired blocks before this time; 0 in older files
  alignas(64) Unit free_counts[kClasses];  // {changes << 2, free blocks}
  std::uint64_t free_hints[kClasses];      // where in its map a search begins
  std::uint64_t assemble_hint;             // where a search for adjacent pieces begins
  // Numbers of limits are reused; see recycle.h. The epoch has its own cache line, because every check reads it.
  alignas(64) std::uint64_t limits_epoch;
  alignas(64) std::uint64_t recycling;  // epoch of its start << 3 | a Recycling
  NumberSet limits_used;                // the numbers found in slots
  // The clock of calendars: how often it was corrected. After an odd number the first of the two is in effect, else the
  // second; the other is for the next change. Each has the members of algorithm::CalendarShift, in their order.
  std::uint64_t calendar_shift;
  std::int64_t calendar_shifts[2][20];
};
inline constexpr std::uint64_t kHeaderBytes = 4096;
static_assert(sizeof(Header) <= kHeaderBytes);

// Where the parts are. All numbers have been checked against the size of the region.
struct Layout {
  std::uint64_t registry, participants, maps, pages, arena, bytes;  // offsets, and the size
};

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

constexpr Layout layout_of(std::uint64_t pages, std::uint64_t arena_lines) {
  Layout at{};
  at.registry = kHeaderBytes;
  at.participants = at.registry + kLimitsMax * sizeof(RegistryEntry) + 4 * sizeof(RegistryEntry);
  at.maps = at.participants + kParticipants * sizeof(Participant);
  std::uint64_t maps = 0;
  for (unsigned i = 0; i < kClasses; ++i) maps += map_units(arena_lines, i);
  at.pages = round_up(at.maps + maps * sizeof(Unit), 4096);
  at.arena = at.pages + pages * sizeof(Page);
  at.bytes = round_up(at.arena + arena_lines * sizeof(Line), 4096);
  return at;
}

inline constexpr std::uint64_t kPagesMax = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kArenaLinesMax = std::uint64_t{1} << kHandleBits;

// The region as one process sees it. Does not own the memory.
class Region {
 public:
  Region() = default;
  Region(void* base, std::uint64_t pages, std::uint64_t base_pages, std::uint64_t arena_lines)
      : base_(static_cast<char*>(base)),
        at_(layout_of(pages, arena_lines)),
        pages_(pages),
        base_pages_(base_pages),
        arena_lines_(arena_lines),
        spread_(static_cast<std::uint64_t>((static_cast<Wide128>(pages) << 44) / base_pages)) {
    maps_[0] = at_.maps / sizeof(Unit);
    for (unsigned i = 0; i < kClasses; ++i) maps_[i + 1] = maps_[i] + map_units(arena_lines, i);
  }

  Header& header() const { return *reinterpret_cast<Header*>(base_); }
  RegistryEntry& limit(std::uint32_t number) const {
    return reinterpret_cast<RegistryEntry*>(base_ + at_.registry)[number];
  }
  Participant& participant(std::uint64_t i) const {
    return reinterpret_cast<Participant*>(base_ + at_.participants)[i];
  }
  Page& page(std::uint64_t i) const { return reinterpret_cast<Page*>(base_ + at_.pages)[i]; }
  Line& line(std::uint64_t i) const { return reinterpret_cast<Line*>(base_ + at_.arena)[i]; }
  Unit& free_map(unsigned block_class, std::uint64_t i) const { return unit(maps_[block_class] + i); }
  std::uint64_t free_map_units(unsigned block_class) const { return maps_[block_class + 1] - maps_[block_class]; }
  Unit& unit(std::uint64_t number) const { return reinterpret_cast<Unit*>(base_)[number]; }
  std::uint64_t number_of(const Unit& unit) const {
    return static_cast<std::uint64_t>(reinterpret_cast<const char*>(&unit) - base_) / sizeof(Unit);
  }
  // Whether an operation may touch this unit. A damaged file may contain any number.
  bool is_shared(std::uint64_t number) const { return number >= 4 && number < at_.bytes / sizeof(Unit); }

  // page_of()
  //
  // The page of a key: a page of the table as it was created, refined by bits that the slot also stores. So a resized
  // table finds its keys again without their names.
  std::uint64_t page_of(std::uint64_t place, std::uint64_t name) const {
    const auto base = static_cast<std::uint64_t>(static_cast<Wide128>(place) * base_pages_ >> 64);
    return page_of_base(base, name);
  }
  std::uint64_t page_of_base(std::uint64_t base, std::uint64_t name) const {
    return static_cast<std::uint64_t>(static_cast<Wide128>(base << 20 | (name >> kNameShift & 0xfffff)) * spread_ >>
                                      64);
  }

  std::uint64_t pages() const { return pages_; }
  std::uint64_t base_pages() const { return base_pages_; }
  std::uint64_t arena_lines() const { return arena_lines_; }
  std::uint64_t bytes() const { return at_.bytes; }
  char* base() const { return base_; }

 private:
  __extension__ using Wide128 = unsigned __int128;
  char* base_ = nullptr;
  Layout at_{};
  std::uint64_t pages_ = 0, base_pages_ = 0, arena_lines_ = 0;
  std::uint64_t maps_[kClasses + 1] = {};  // the unit where each class's map begins
  std::uint64_t spread_ = 0;               // pages / base_pages, as a 20.44 bit fraction
};

// The bits of a name that choose its home line but not its page. The period of a window or log is mixed into them, so
// each period of a key has its own slot, in the key's page.
inline constexpr unsigned kHomeShift = 34;
inline constexpr std::uint64_t kHomeMask = ~std::uint64_t{0} << kHomeShift;

// The line of a page where a search for a key begins. It depends only on the stored bits, so a sweep can compute it,
// too.
inline std::uint32_t home_line(std::uint64_t name) {
  return static_cast<std::uint32_t>((name >> kHomeShift) * kLines >> 30);
}
inline std::uint32_t next_line(std::uint32_t line) { return line + 1 == kLines ? 0 : line + 1; }

// A bit for each line between a key's home and the line where it is.
inline std::uint64_t lines_between(std::uint32_t home, std::uint32_t line) {
  std::uint64_t lines = 0;
  for (; home != line; home = next_line(home)) lines |= std::uint64_t{1} << home;
  return lines;
}

}  // namespace weir::table
