// See eviction.h. One pass over the page's slots counts the groups, a second one ranks the victims.

#include "table/eviction.h"

#include <algorithm>
#include <array>

#include "table/sweep.h"

// Tests that choose schedules define their own number.
#ifndef WEIR_TABLE_EVICTED_MAX
#define WEIR_TABLE_EVICTED_MAX 64
#endif

namespace weir::table {
namespace {

constexpr std::size_t kCovered = 2;                          // 1 / kCovered of the keys are covered at once
constexpr std::size_t kEvictedMax = WEIR_TABLE_EVICTED_MAX;  // of another family, at once
constexpr std::size_t kBlocksMax = 32;                       // each costs a cache miss: only some are read
constexpr std::size_t kBlocksGivenMax = 8;

std::uint64_t rank_of(const Known& known, std::uint64_t floor, std::int64_t now) {
  if (!known.packing.fits_slot) return static_cast<std::uint64_t>(unpack_summary(floor).count);
  if (known.packing.kind == Kind::compact) {
    const algorithm::CompactLog counts = unpack_compact(floor, known.packing);
    return static_cast<std::uint64_t>(algorithm::sliding_window_roll(counts, known.limit.period_us, now).used());
  }
  if (known.packing.kind != Kind::sliding) return floor;
  const algorithm::SlidingWindow window = unpack_sliding(floor, known.packing);
  return static_cast<std::uint64_t>(used_of(window, known.limit.period_us, now));
}

}  // namespace

bool Eviction::may_go(const Unit& unit, std::uint64_t tag, const Taken& taken) const {
  const auto is_own = [&](const Name& name) { return name.name == name_of(tag); };
  return !finder_.is_offered(unit) && (tag == 0 || std::ranges::none_of(taken.names, is_own)) &&
         taken.changes.find(region_.number_of(unit)) == nullptr;
}

// Expired keys in blocks are left to the sweep.
bool Eviction::count(const Room& room, std::int64_t now, const Taken& taken, Groups& groups) {
  const bool is_slot_wanted = room.wanted == Wanted::slot;
  constexpr std::size_t kPlaces = 512;
  std::array<std::uint16_t, kPlaces> places{};  // by number: its group's index plus one
  for (Unit& unit : slots_of(*room.page)) {
    const Word word = actor_.read(unit);
    const std::uint32_t number = limit_of(word.tag);
    if (word.tag == 0 || is_ticket(number)) {
      const bool is_over = word.tag == 0 || is_ticket_over(number, word.state, recently(now));
      if (is_over && is_slot_wanted && may_go(unit, word.tag, taken)) return false;
      continue;
    }
    std::size_t at = number % kPlaces;
    while (places[at] != 0 && groups[places[at] - 1u].number != number) at = (at + 1) % kPlaces;
    if (places[at] == 0) {
      const Known* const known = reader_.known(number);
      if (known == nullptr) continue;
      groups.add() = {.known = known, .number = number};
      places[at] = static_cast<std::uint16_t>(groups.size());
    }
    Group& group = groups[places[at] - 1u];
    if (is_floor(word, *group.known)) continue;
    ++group.count;
    if (!group.known->packing.fits_slot || !is_slot_wanted) continue;
    if (SlotReader::has_lapsed_in_slot(*group.known, word.state, now) && may_go(unit, word.tag, taken)) return false;
  }
  return true;
}

// The largest group of the family that has to give up a slot.
Eviction::Choice Eviction::choose(std::span<Group> groups, const Room& room) {
  const bool are_blocks_wanted = room.wanted != Wanted::slot;
  std::ranges::sort(groups, {}, [](const Group& group) { return group.known->floor_name; });
  Group *own = nullptr, *most = nullptr;
  std::uint32_t own_count = 0, most_count = 0, families = 0, all = 0;
  for (std::size_t i = 0, end = 0; i < groups.size(); i = end) {
    const std::uint64_t name = groups[i].known->floor_name;
    std::uint32_t count = 0;
    Group* largest = nullptr;
    for (end = i; end < groups.size() && groups[end].known->floor_name == name; ++end) {
      Group& group = groups[end];
      if (!is_evictable(*group.known) || (are_blocks_wanted && group.known->packing.fits_slot)) continue;
      count += group.count;
      if (!group.is_spent && group.count > 0 && (largest == nullptr || group.count > largest->count)) largest = &group;
    }
    if (count == 0) continue;
    ++families;
    all += count;
    if (name == room.family) own = largest, own_count = count;
    if (largest != nullptr && (most == nullptr || count > most_count)) most = largest, most_count = count;
  }
  if (own_count == 0) ++families;
  const std::uint32_t fair = all / families;
  if (own != nullptr && (own_count >= fair || own == most)) {
    return {own, true, are_blocks_wanted ? kBlocksGivenMax : own->count};
  }
  // At most what the one family lacks and the other has too much. Few while the new key's family has few, more in a
  // flood.
  const std::uint32_t lacks = fair > own_count ? fair - own_count : 1;
  const std::uint32_t surplus = most_count > fair ? most_count - fair : 1;
  return {most, false, std::min<std::size_t>({kEvictedMax, std::max(own_count, 1u), lacks, surplus})};
}

void Eviction::collect(Page& page, const Group& group, std::int64_t now, const Taken& taken, Victims& victims) {
  const Known& known = *group.known;
  const std::size_t most = known.packing.fits_slot ? kSlots : kBlocksMax;
  // If blocks are read, different ones each time.
  std::uint32_t line = static_cast<std::uint32_t>((load(page.version.tag) >> 2) % kLines);
  for (std::uint32_t i = 0; i < kLines && victims.size() < most; ++i, line = next_line(line)) {
    for (Unit& unit : page.slots[line]) {
      if (limit_of(load(unit.tag)) != group.number || victims.size() == most) continue;
      const Word word = actor_.read(unit);
      if (limit_of(word.tag) != group.number || word.tag == 0 || is_floor(word, known)) continue;
      if (!may_go(unit, word.tag, taken)) continue;
      const bool has_lapsed = !known.packing.fits_slot && reader_.has_lapsed_in_block(word, now);
      const auto state = has_lapsed ? 0 : floor_over(reader_, known, word, now);
      if (state) victims.add() = {rank_of(known, *state, now), *state, &unit, word};
    }
  }
}

Eviction::Victim& Eviction::nearest(const Page& page, std::span<Victim> victims, std::uint32_t line) {
  const auto distance = [&](const Victim& victim) { return (line_in(page, *victim.unit) + kLines - line) % kLines; };
  return *std::ranges::min_element(victims, {}, distance);
}

bool Eviction::change(std::span<Entry> entries) {
  std::ranges::sort(entries, {}, &Entry::unit);
  return actor_.change(entries, Way::help, nullptr);
}

Eviction::Raised Eviction::raise_floor(Page& page, const Word& version, const Group& group, std::span<Victim> victims,
                                       std::int64_t now) {
  const Known& known = *group.known;
  std::uint64_t state = 0;
  for (const Victim& victim : victims) state = join(known, state, victim.state, now);
  if (state == 0) return Raised::in_page;  // all of them have expired
  Unit* place = nullptr;
  Word seen{};
  for (const Floor& floor : finder_.floors_of(page, version, known.floor_name)) {
    if (limit_of(floor.word.tag) != group.number) continue;
    place = floor.unit;
    seen = floor.word;
    if (reader_.has_lapsed(seen, now)) continue;
    if (covers(known, seen.state, state, now)) return Raised::in_page;
    state = join(known, state, seen.state, now);
  }
  for (Unit& unit : page.floors) {
    if (place != nullptr) break;
    const Word word = actor_.read(unit);
    if (word.tag != 0 && !reader_.has_lapsed(word, now)) continue;
    place = &unit;
    seen = word;
  }
  Word next{next_version(version.tag), version.state};
  std::optional<Block> block;
  const bool is_in_slot = place == nullptr;
  if (is_in_slot) {
    std::swap(victims.front(), nearest(page, victims, home_line(known.floor_name)));
    place = victims.front().unit;
    seen = victims.front().seen;
    block = reader_.block_of(seen);
    next.tag |= kFloorInSlot;
    next.state |= lines_between(home_line(known.floor_name), line_in(page, *place));
  }
  base::Few<Entry, 3> entries;
  entries.add() = {region_.number_of(page.version), version, next};
  entries.add() = {region_.number_of(*place), seen, {tag_of(known.floor_name, group.number), state}};
  Unit& pending = actor_.record().pending[kSweepPending];
  if (block) entries.add() = {region_.number_of(pending), {}, pending_word(*block)};
  const bool is_done = change(entries.all());
  if (block) give_block(actor_, kSweepPending);
  if (!is_done) return Raised::failed;
  if (is_in_slot) count_evicted();
  return is_in_slot ? Raised::in_slot : Raised::in_page;
}

void Eviction::count_evicted() {
  Unit& tally = actor_.record().tally;
  const Word word = actor_.read(tally);
  replace(tally, word, {word.tag + 4, 0});
}

bool Eviction::make_room(const Room& room, std::int64_t now, const Taken& taken) {
  Page& page = *room.page;
  const Word version = actor_.read(page.version);
  Groups groups;
  if (!count(room, now, taken, groups)) {
    finder_.insist();
    return true;
  }
  const bool is_slot_wanted = room.wanted == Wanted::slot;
  for (Choice choice = choose(groups.all(), room); choice.group != nullptr; choice = choose(groups.all(), room)) {
    if (room.wanted == Wanted::own_block && !choice.is_own) return true;
    Victims found;
    collect(page, *choice.group, now, taken, found);
    if (found.size() == 0) {
      choice.group->is_spent = true;
      continue;
    }
    const auto lapsed = static_cast<std::size_t>(std::ranges::count(found.all(), 0u, &Victim::state));
    const std::size_t part = lapsed > 0 ? lapsed : std::max<std::size_t>(1, found.size() / kCovered);
    const std::span<Victim> victims = found.all().first(std::min(part, choice.most));
    std::ranges::nth_element(found.all(), victims.end() - 1, {}, &Victim::rank);
    if (!is_slot_wanted && compact(*choice.group->known, victims, now)) return true;
    const Raised raised = raise_floor(page, version, *choice.group, victims, now);
    if (raised == Raised::failed) return true;
    if (!is_slot_wanted || (victims.size() > 1 && !choice.is_own)) {
      evict(raised == Raised::in_slot ? victims.subspan(1) : victims);
      if (is_slot_wanted) finder_.insist();
    } else if (raised == Raised::in_page) {
      const Victim& one = nearest(page, victims, room.home);
      finder_.offer({&page, one.unit, one.seen, one.state != 0});
    }
    return true;
  }
  // Nothing can be evicted, unless other threads have changed that meanwhile.
  return room.wanted == Wanted::own_block || !(actor_.read(page.version) == version);
}

// The logs give up their blocks and stay as counts. False if this limit's logs cannot.
bool Eviction::compact(const Known& known, std::span<const Victim> victims, std::int64_t now) {
  const std::uint32_t number = known.packing.kind == Kind::log ? reader_.compact_number(known) : 0;
  if (number == 0) return false;
  for (const Victim& victim : victims) {
    const auto content = reader_.read(victim.seen);
    const auto* log = content ? std::get_if<RingLog>(&content->cell.state()) : nullptr;
    if (log == nullptr) continue;  // it changed meanwhile
    // As of the time by which a slot expires: a request that read the clock a little earlier still finds everything
    // that counts for it.
    const algorithm::CompactLog counts = algorithm::compact_log_of(*log, known.limit.period_us, recently(now));
    Word next{};
    if (victim.state != 0 && counts.used() > 0) {
      next = {tag_of(name_of(victim.seen.tag), number), pack_compact(counts, known.limit)};
    }
    if (!remove_slot(actor_, reader_, *victim.unit, victim.seen, next)) continue;
    if (next.tag == 0) {
      count_keys(actor_, -1);
    } else {
      store(actor_.record().compacted, load(actor_.record().compacted) + 1);
    }
  }
  return true;
}

void Eviction::evict(std::span<const Victim> victims) {
  for (const Victim& victim : victims) {
    if (!remove_slot(actor_, reader_, *victim.unit, victim.seen)) continue;
    if (victim.state != 0) count_evicted();
    count_keys(actor_, -1);
  }
}

Eviction::Kept Eviction::recount(Page& page, std::int64_t now) {
  Kept kept{.wait_us = INT64_MAX};
  for (Unit& unit : slots_of(page)) {
    const Word word = actor_.read(unit);
    const SlotUse use = reader_.use_of(word);
    if (use != SlotUse::ticket && use != SlotUse::kept) continue;
    if (reader_.has_lapsed(word, now)) {
      if (remove_slot(actor_, reader_, unit, word) && use == SlotUse::kept) count_keys(actor_, -1);
      continue;
    }
    ++(use == SlotUse::ticket ? kept.tickets : kept.held);
    if (use != SlotUse::ticket) continue;
    kept.wait_us = std::min(kept.wait_us, ticket_left_us(limit_of(word.tag), word.state, now));
  }
  return kept;
}

}  // namespace weir::table
