// See table.h. The fast way stands here; transactions, the sweep and the repair have files of their own.

#include "table/table.h"

#include <algorithm>
#include <utility>

namespace weir::table {
namespace {

// As operator==, without a call: calendars that are not the same object take the slow way.
bool is_same(const Limit& a, const Limit& b) {
  return a.permits == b.permits && a.period_us == b.period_us && a.capacity == b.capacity && a.rate == b.rate &&
         a.weight == b.weight && a.algorithm == b.algorithm && a.events_max == b.events_max && a.calendar == b.calendar;
}

}  // namespace

Result<std::unique_ptr<Table>> Table::open(TableOptions options) {
  if (!has_wide_atomics()) {
    return fail(ErrorCode::unavailable, "this processor has no 16-byte atomic loads (AVX), which the table needs");
  }
  auto mapping = options.file.empty() ? map_memory(options.keys, options.arena_bytes)
                                      : open_file({options.file, options.keys, options.arena_bytes});
  if (!mapping) return fail(mapping.error());
  return std::unique_ptr<Table>(new Table(*std::move(mapping), std::move(options)));
}

Table::Table(Mapping mapping, TableOptions options)
    : mapping_(std::move(mapping)),
      region_(mapping_.region()),
      hash_key_{region_.header().hash_key[0], region_.header().hash_key[1]},
      clock_(options.clock ? std::move(options.clock)
                           : make_shared_clock(region_.header().clock_offset_us, region_.header().latest_us)),
      registry_(region_, std::move(options.find_calendar)),
      seats_(mapping_, registry_) {
  if (!mapping_.is_sole()) return;
  if (!mapping_.was_clean()) repair(region_, registry_, clock_->now().count(), mapping_.is_new_boot());
  mapping_.share();
}

Table::~Table() {
  if (seats_.is_born()) mapping_.mark_clean();
}

bool Table::charge_fast(Debit& debit, std::int64_t now) {
  Unit* unit = match(page(debit.name).slots[home_line(debit.name.name)], debit.name.name);
  if (unit == nullptr || now < 0 || now >= kTimeEnd) return false;
  Word word = load(*unit);
  while (mark_of(word) == kPlain && name_of(word.tag) == debit.name.name) {
    const Known* known = registry_.met(limit_of(word.tag));
    if (known == nullptr || !known->packing.fits_slot || !is_same(known->limit, *debit.limit)) return false;
    const Packing& packing = known->packing;
    std::uint64_t next = 0;
    if (packing.kind == Kind::bucket) {
      const Bucket state = unpack_bucket(word.state);
      if (bucket_settle(state, *debit.limit, now).moved) return false;
      const auto stepped = bucket_step(state, *debit.limit, now, debit.cost);
      debit.decision = stepped.decision;
      next = stepped.next.word;
    } else if (packing.kind == Kind::fixed) {
      const FixedWindow state = unpack_fixed(word.state, packing);
      if (fixed_window_settle(state, *debit.limit, now).moved) return false;
      const auto stepped = fixed_window_step(state, *debit.limit, now, debit.cost);
      debit.decision = stepped.decision;
      next = static_cast<std::uint64_t>(pack(stepped.next, packing));
    } else {
      const SlidingWindow state = unpack_sliding(word.state, packing);
      if (sliding_window_settle(state, *debit.limit, now).moved) return false;
      const auto stepped = sliding_window_step(state, *debit.limit, now, debit.cost);
      debit.decision = stepped.decision;
      next = static_cast<std::uint64_t>(pack(stepped.next, packing));
    }
    if (!debit.decision.allowed || debit.cost == 0) return true;
    if (debit.decision.reset_after.count() == 0) return false;  // the key is to be forgotten
    if (exchange(*unit, word, {word.tag, next})) return true;
  }
  return false;
}

Result<Ruling> Table::charge(std::span<Debit> debits, std::span<Ticket> tickets, std::int64_t now) {
  auto seat = seats_.sit_down();
  if (!seat) return fail(seat.error());
  return Transaction(seat->actor(), registry_, *clock_, debits, tickets, now).run();
}

std::uint64_t Table::size() {
  std::uint64_t keys = 0;
  for (std::uint64_t who = 0; who < kParticipants; ++who) keys += load(region_.participant(who).keys);
  return std::min(keys, capacity());  // a count that a kill left too low would show as a very large one
}

Counters Table::counters() {
  Counters counters{.swept = load(region_.header().swept)};
  auto seat = seats_.sit_down();
  for (std::uint64_t who = 0; seat && who < kParticipants; ++who) {
    const Word tally = seat->actor().read(region_.participant(who).tally);
    counters.evicted += tally.tag >> 2;
    counters.forgiven += tally.state;
  }
  return counters;
}

}  // namespace weir::table
