// Walks over all pages of a copy. See contents.h.

#include "table/contents.h"

#include <algorithm>

#include "table/table.h"
#include "table/take_over.h"

namespace weir::table {
namespace {

// Permits in flight are acquired, not checked, so they have no peek.
Decision peek_at(const Content& content, std::int64_t now) {
  const auto* holds = std::get_if<Holds>(&content.cell.state());
  if (holds == nullptr) return content.cell.decide(now, 0).decision;
  Decision decision{
      .allowed = true, .limit = content.cell.limit().capacity, .remaining = content.cell.limit().capacity};
  for (const Hold& hold : *holds) {
    if (hold.expires_us <= now) continue;
    decision.remaining = std::max<std::int64_t>(0, decision.remaining - hold.cost);
    decision.reset_after = std::max(decision.reset_after, Micros{hold.expires_us - now});
  }
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
  const ShiftedCalendar shifted(calendar_shift(region().header()));
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
  if (is_ticket(limit_of(word.tag))) {
    if (reader_.block_of(word)) ++totals.arena_lines;
    ++(is_ticket_over(limit_of(word.tag), word.state, now_) ? totals.lapsed : totals.tickets);
    return;
  }
  if (const Known* known = reader_.known(limit_of(word.tag)); known != nullptr && is_floor(word, *known)) {
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

Totals Contents::walk(const std::function<void(const Held&)>& visit) {
  const Region& table = region();
  const ShiftedCalendar shifted(calendar_shift(table.header()));
  Totals totals{.swept = load(table.header().swept)};
  for (std::uint64_t who = 0; who < kParticipants; ++who) {
    const Word tally = actor_.read(table.participant(who).tally);
    totals.evicted += tally.tag >> 2;
    totals.early += load(table.participant(who).early);
    totals.no_room += load(table.participant(who).no_room);
  }
  for (std::uint64_t i = 0; i < table.pages(); ++i) {
    std::uint64_t used = 0;
    for (auto& line : table.page(i).slots) {
      for (Unit& unit : line) {
        const Word word = actor_.read(unit);
        if (actor_.take_note_of_damage()) ++totals.unreadable;
        if (word.tag == 0) continue;
        ++used;
        look_at(word, i, visit, totals);
      }
    }
    totals.fullest = std::max(totals.fullest, used);
    for (Unit& unit : table.page(i).floors) totals.floors += actor_.read(unit).tag != 0;
  }
  return totals;
}

}  // namespace weir::table
