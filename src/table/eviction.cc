// See eviction.h. The groups of a page are counted in one pass over its slots, the victims are ranked in a second.

#include "table/eviction.h"

#include <algorithm>
#include <array>

#include "table/sweep.h"

namespace weir::table {
namespace {

constexpr std::size_t kBatch = 8;  // one key in eight is covered at once

std::uint64_t rank_of(const Known& known, std::uint64_t floor, std::int64_t now) {
  if (!known.packing.fits_slot) return static_cast<std::uint64_t>(unpack_summary(floor).count);
  if (known.packing.kind != Kind::sliding) return floor;
  const SlidingWindow window = unpack_sliding(floor, known.packing);
  return static_cast<std::uint64_t>(used_of(window, known.limit.period_us, now));
}

}  // namespace

bool Eviction::may_go(const Unit& unit, const Word& word, const Taken& taken) const {
  const auto is_own = [&](const Name& name) { return name.name == name_of(word.tag); };
  return !finder_.is_offered(unit) && (word.tag == 0 || std::ranges::none_of(taken.names, is_own)) &&
         taken.changes.find(region_.number_of(unit)) == nullptr;
}

bool Eviction::count(Page& page, std::int64_t now, const Taken& taken, Groups& groups) {
  constexpr std::size_t kPlaces = 512;
  std::array<std::uint16_t, kPlaces> places{};  // of a number's group, from 1
  int blocks = 64;                              // far away: what has lapsed among the others the sweep finds
  for (auto& line : page.slots) {
    for (Unit& unit : line) {
      const Word word = actor_.read(unit);
      const std::uint32_t number = limit_of(word.tag);
      std::optional<bool> lapsed = word.tag == 0 ? true : reader_.has_lapsed_in_slot(word, now);
      if (!lapsed && --blocks >= 0) lapsed = reader_.has_lapsed_in_block(word, now);
      if (lapsed.value_or(false) && may_go(unit, word, taken)) return false;
      if (word.tag == 0) continue;
      const Known* const known = reader_.known(number);
      if (known == nullptr || !is_evictable(*known) || is_floor(word, *known)) continue;
      std::size_t at = number % kPlaces;
      while (places[at] != 0 && groups[places[at] - 1u].number != number) at = (at + 1) % kPlaces;
      if (places[at] == 0) {
        groups.add() = {.known = known, .number = number};
        places[at] = static_cast<std::uint16_t>(groups.size());
      }
      Group& group = groups[places[at] - 1u];
      ++group.count;
      group.free += may_go(unit, word, taken) ? 1u : 0u;
    }
  }
  return true;
}

// The largest group of the family that has to give.
const Eviction::Group* Eviction::choose(std::span<Group> groups, std::uint64_t family) const {
  std::ranges::sort(groups, {}, [](const Group& group) { return group.known->floor_name; });
  const Group *own = nullptr, *most = nullptr;
  std::uint32_t own_count = 0, most_count = 0, families = 0, all = 0;
  for (std::size_t i = 0, end = 0; i < groups.size(); i = end) {
    const std::uint64_t name = groups[i].known->floor_name;
    std::uint32_t count = 0;
    const Group* largest = nullptr;
    for (end = i; end < groups.size() && groups[end].known->floor_name == name; ++end) {
      count += groups[end].count;
      if (groups[end].free > 0 && (largest == nullptr || groups[end].free > largest->free)) largest = &groups[end];
    }
    ++families;
    all += count;
    if (name == family) own = largest, own_count = count;
    if (largest != nullptr && (most == nullptr || count > most_count)) most = largest, most_count = count;
  }
  if (own_count == 0) ++families;
  return own != nullptr && own_count >= all / families ? own : most;
}

void Eviction::collect(Page& page, const Group& group, std::int64_t now, const Taken& taken, Victims& victims) {
  for (auto& line : page.slots) {
    for (Unit& unit : line) {
      if (limit_of(load(unit.tag)) != group.number) continue;
      const Word word = actor_.read(unit);
      if (limit_of(word.tag) != group.number || word.tag == 0 || is_floor(word, *group.known)) continue;
      if (!may_go(unit, word, taken)) continue;
      const auto state = floor_over(reader_, *group.known, word, now);
      if (state) victims.add() = {&unit, word, rank_of(*group.known, *state, now), *state};
    }
  }
}

bool Eviction::change(std::span<Entry> entries) {
  std::ranges::sort(entries, {}, &Entry::unit);
  return actor_.change(entries, Way::help, nullptr);
}

bool Eviction::raise_floor(Page& page, const Word& version, const Group& group, std::span<Victim> victims,
                           std::int64_t now) {
  const Known& known = *group.known;
  std::uint64_t state = 0;
  for (const Victim& victim : victims) state = join(known, state, victim.state);
  Unit* place = nullptr;
  Word seen{};
  for (const Floor& floor : finder_.floors_of(page, version, known.floor_name)) {
    if (limit_of(floor.word.tag) != group.number) continue;
    if (covers(known, floor.word.state, victims.front().state)) return true;
    place = floor.unit;
    seen = floor.word;
    state = join(known, state, seen.state);
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
  if (is_in_slot) {  // where the first of them was
    place = victims.front().unit;
    seen = victims.front().seen;
    block = reader_.block_of(seen);
    const auto line = static_cast<std::uint32_t>((place - page.slots[0]) / kSlotsInLine);
    next.tag |= kFloorInSlot;
    next.state |= lines_between(home_line(known.floor_name), line);
  }
  Few<Entry, 3> entries;
  entries.add() = {region_.number_of(page.version), version, next};
  entries.add() = {region_.number_of(*place), seen, {tag_of(known.floor_name, group.number), state}};
  Unit& pending = actor_.record().pending[kSweepPending];
  if (block) entries.add() = {region_.number_of(pending), {}, pending_word(*block)};
  const bool is_done = change(entries.all());
  if (block) give_block(actor_, kSweepPending);
  if (is_done && is_in_slot) {
    Unit& tally = actor_.record().tally;
    const Word word = actor_.read(tally);
    replace(tally, word, {word.tag + 4, 0});
  }
  return is_done && !is_in_slot;
}

bool Eviction::make_room(Page& page, std::uint64_t family, std::int64_t now, const Taken& taken) {
  const Word version = actor_.read(page.version);
  Groups groups;
  if (!count(page, now, taken, groups)) {
    finder_.insist();
    return true;
  }
  const Group* const group = choose(groups.all(), family);
  if (group == nullptr) return false;
  Victims found;
  collect(page, *group, now, taken, found);
  if (found.size() == 0) return true;  // they have changed meanwhile
  const bool is_own = group->known->floor_name == family;
  const std::size_t batch = is_own ? std::max<std::size_t>(1, found.size() / kBatch) : 1;
  const std::span<Victim> all = found.all();
  std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(batch - 1), {}, &Victim::rank);
  if (raise_floor(page, version, *group, all.first(batch), now)) {
    finder_.offer({&page, all.front().unit, all.front().seen});
  }
  return true;
}

Eviction::Kept Eviction::recount(Page& page, std::int64_t now) {
  Kept kept{.wait_us = INT64_MAX};
  for (auto& line : page.slots) {
    for (Unit& unit : line) {
      const Word word = actor_.read(unit);
      const std::uint32_t number = limit_of(word.tag);
      const Known* const known = is_ticket(number) || number == kInBlock ? nullptr : reader_.known(number);
      if (word.tag == 0 || (known != nullptr && is_evictable(*known))) continue;
      if (reader_.has_lapsed(word, now)) {
        if (remove_slot(actor_, reader_, unit, word) && is_key(word.tag)) count_keys(actor_, -1);
        continue;
      }
      ++(is_ticket(number) ? kept.tickets : kept.held);
      if (is_ticket(number)) kept.wait_us = std::min(kept.wait_us, ticket_left_us(number, word.state, now));
    }
  }
  return kept;
}

}  // namespace weir::table
