// Walks over all pages of a copy. See contents.h.

#include "table/contents.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "table/table.h"
#include "table/take_over.h"

namespace weir::table {
namespace {

// Permits in flight are acquired, not checked, so they have no peek.
Decision peek_at(const Content& content, std::int64_t now) {
  const auto* holds = std::get_if<algorithm::Holds>(&content.cell.state());
  if (holds == nullptr) return content.cell.decide(now, 0).decision;
  Decision decision = algorithm::granted(content.cell.limit().capacity);
  algorithm::concurrency_report(*holds, content.cell.limit(), now, decision);
  return decision;
}

}  // namespace

Contents::Contents(Mapping mapping, FindCalendar find_calendar, const ClockReading& reading)
    : mapping_(std::move(mapping)),
      now_(time_at(region().header(), reading)),
      is_in_use_(has_users(mapping_.fd())),
      was_clean_(load(region().header().clean) == kClean),
      registry_(mapping_.region(), std::move(find_calendar)),
      actor_(mapping_.region(), 0),
      reader_(actor_, registry_) {
  const algorithm::ShiftedCalendar shifted(calendar_shift(region().header()));
  const bool is_torn = !keeps_time(region().header(), reading) || load(region().header().clean) == kTorn;
  if (is_in_use_) {
    for (std::uint64_t who = 0; who < kParticipants; ++who) Actor(region(), who).recover();
  } else {
    repair(region(), registry_, now_, is_torn);
  }
  modernize(actor_, reader_);
}

void Contents::look_at(const Word& word, std::uint64_t page, const std::function<void(const Held&)>& visit,
                       Totals& totals) {
  const SlotUse use = reader_.use_of(word);
  if (use == SlotUse::ticket) {
    if (reader_.block_of(word)) ++totals.arena_lines;
    ++(is_ticket_over(limit_of(word.tag), word.state, now_) ? totals.lapsed : totals.tickets);
    return;
  }
  if (use == SlotUse::floor) {
    ++totals.floors;
    return;
  }
  auto content = reader_.read(word);
  if (!content) {
    ++totals.unreadable;
    actor_.take_note_of_damage();
    return;
  }
  if (content->block) totals.arena_lines += std::uint64_t{1} << content->block->block_class;
  content->cell.prepare(now_);
  const Held held{page, name_of(word.tag) >> kNameShift, &content->cell.limit(), peek_at(*content, now_)};
  if (actor_.take_note_of_damage()) {
    ++totals.unreadable;
    return;
  }
  if (held.peek.reset_after.count() == 0) {
    ++totals.lapsed;
    return;
  }
  ++totals.live;
  totals.compact += content->packing.kind == Kind::compact;
  visit(held);
}

Unit* free_slot(Page& page, std::uint64_t name) {
  std::uint32_t line = home_line(name);
  for (std::uint32_t i = 0; i < kLines; ++i) {
    for (Unit& unit : page.slots[line]) {
      if (unit.tag == 0) return &unit;
    }
    page.version.state |= std::uint64_t{1} << line;
    line = next_line(line);
  }
  return nullptr;
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : path;
}

Totals Contents::walk(const std::function<void(const Held&)>& visit) {
  const Region& table = region();
  const algorithm::ShiftedCalendar shifted(calendar_shift(table.header()));
  Totals totals{.counters = counters_of(actor_)};
  for (std::uint64_t i = 0; i < table.pages(); ++i) {
    std::uint64_t used = 0;
    for (Unit& unit : slots_of(table.page(i))) {
      const Word word = actor_.read(unit);
      if (actor_.take_note_of_damage()) ++totals.unreadable;
      if (word.tag == 0) continue;
      ++used;
      look_at(word, i, visit, totals);
    }
    totals.fullest = std::max(totals.fullest, used);
    for (Unit& unit : table.page(i).floors) totals.floors += actor_.read(unit).tag != 0;
  }
  return totals;
}

}  // namespace weir::table
