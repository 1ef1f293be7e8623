// See take_over.h. For a later layout, every change of a page becomes one more step of modernize().

#include "table/take_over.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "table/contents.h"

namespace weir::table {
namespace {

constexpr std::uint64_t kChunk = 4096;

// A page of layout 1, rewritten in place.
class OldPage {
 public:
  OldPage(Page& page, Actor& actor, SlotReader& reader) : page_(page), actor_(actor), reader_(reader) {}

  void rewrite() {
    std::vector<Word> words;
    for (Unit& unit : slots_of(page_)) {
      const Word word = actor_.read(unit);
      if (word.tag != 0) words.push_back(modern(word));
      unit = {};
    }
    page_.version = {4, 0};
    for (Unit& unit : page_.floors) unit = floor_of(actor_.read(unit));
    for (const Word& word : words) {
      Unit* const slot = word.tag != 0 ? free_slot(page_, name_of(word.tag)) : nullptr;
      if (slot != nullptr) *slot = {word.tag, word.state};
    }
  }

 private:
  // The slot's new word; a tag of 0 leaves it out. Layout 1 kept all periods of a key under one name. The state in
  // the slot belongs to the period of its limit.
  Word modern(const Word& word) {
    if (limit_of(word.tag) == kReservation) return {word.tag, reservation_without_time(word.state)};
    if (!is_key(word.tag)) return word;
    const auto content = reader_.read(word);
    if (!content) return word;  // the repair that comes next finds it, too
    return {word.tag ^ (algorithm::period_print(content->cell.limit()) & kHomeMask), word.state};
  }

  // Layout 1 had a counter there, shared by new keys without a slot: none of them has used more.
  Unit floor_of(const Word& counter) {
    const Known* const known = reader_.known(limit_of(counter.tag));
    if (known == nullptr) return {};
    return {tag_of(known->floor_name, limit_of(counter.tag)), counter.state};
  }

  Page& page_;
  Actor& actor_;
  SlotReader& reader_;
};

// Chunks that are all zero stay holes in the page cache: most of a table that is not full.
void copy_region(const Region& from, const Region& to) {
  for (std::uint64_t at = 0; at < from.bytes(); at += kChunk) {
    const char* const chunk = from.base() + at;
    if (std::any_of(chunk, chunk + kChunk, [](char byte) { return byte != 0; })) {
      std::memcpy(to.base() + at, chunk, kChunk);
    }
  }
}

}  // namespace

void modernize(Actor& actor, SlotReader& reader) {
  const Region& region = actor.region();
  if (region.header().version >= kVersion) return;
  for (std::uint64_t i = 0; i < region.pages(); ++i) OldPage(region.page(i), actor, reader).rewrite();
  for (std::uint32_t i = 1; i <= kLimitsMax; ++i) region.limit(i).family = 0;  // was part of a zone's name
}

Result<void> take_over(const std::string& path, const FindCalendar& find_calendar, const ClockReading& reading) {
  if (!is_of_older_layout(path)) return {};
  const std::string name = real_path(path);
  auto mapping = open_copy(name, CopyTo::take_over);
  if (!mapping) return fail(mapping.error());
  if (mapping->region().header().version >= kVersion) return {};  // another process was first
  const Contents old(std::move(*mapping), find_calendar, reading);
  const Header& header = old.region().header();
  auto draft = Draft::make(name, {header.pages, header.base_pages, header.arena_lines},
                           {{header.hash_key[0], header.hash_key[1]}, header.created_us}, reading);
  if (!draft) return fail(draft.error());
  copy_region(old.region(), draft->region());
  Header& fresh = draft->region().header();
  fresh.version = kVersion;
  fresh.checksum = checksum_of(fresh);
  fresh.clean = kClean;
  return draft->replace();
}

}  // namespace weir::table
