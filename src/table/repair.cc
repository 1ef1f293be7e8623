// Repairs a table without other users, if its last user did not close it. See table.h.
//
// After a kill, every operation can be completed as its participants would have done it. After a machine crash, each
// page of the file is an older or newer version of its own: a word may name an operation that is not in its record.
// Such a key counts as used up. In both cases the arena is laid out again from what the slots refer to. The repair
// itself may be killed. So a lost slot stays marked until it is set to used up, and the next repair finds it.

#include <algorithm>
#include <vector>

#include "table/floor.h"
#include "table/table.h"

namespace weir::table {
namespace {

class Repair {
 public:
  Repair(const Region& region, Registry& registry, std::int64_t now)
      : region_(region),
        registry_(registry),
        now_(now),
        actor_(region, 0),
        reader_(actor_, registry),
        used_(region.arena_lines(), false),
        torn_(region.arena_lines(), false) {}

  void run(bool is_torn) {
    is_torn_ = is_torn;
    const bool has_writers = registry_.has_writers();
    for (std::uint64_t who = 0; who < kParticipants; ++who) {
      if (!is_torn) Actor(region_, who).recover();
      if (has_writers) registry_.recover_everywhere(who);
      settle(region_.participant(who));
    }
    // From here on, marks belong to no operation, and an actor must not read a marked word.
    find_torn_lines();
    for (std::uint64_t i = 0; i < region_.pages(); ++i) settle(region_.page(i));
    clear_torn_lines();
    lay_out_arena();
    for (Unit* unit : lost_) spend(*unit);
    count_all_keys(region_);
  }

 private:
  static void write(Unit& unit, const Word& word) { replace(unit, load(unit), word); }
  static void clear_mark(Unit& unit) {
    const Word word = load(unit);
    if (mark_of(word) != kPlain) write(unit, {word.tag & ~kMarkBits, 0});
  }

  void find_torn_lines() {
    for (std::uint64_t line = 0; line < torn_.size(); ++line) {
      for (const Unit& unit : region_.line(line).units) {
        if (mark_of({load(unit.tag), 0}) != kPlain) torn_[line] = true;
      }
    }
  }

  void clear_torn_lines() {
    for (std::uint64_t line = 0; line < torn_.size(); ++line) {
      if (!torn_[line]) continue;
      for (Unit& unit : region_.line(line).units) clear_mark(unit);
    }
  }

  void settle(Participant& participant) {
    clear_mark(participant.tally);
    for (Unit& pending : participant.pending) write(pending, {});
    const std::uint64_t number = load(participant.status) >> 2;
    weir::table::store(participant.status, number << 2 | kFailed);
    weir::table::store(participant.active, idle_word(claim_of(load(participant.active))));
    weir::table::store(participant.writing, 0);
  }

  void settle(Page& page) {
    std::uint64_t passed = 0, held = 0, tickets = 0;
    for (std::uint32_t line = 0; line < kLines; ++line) {
      for (Unit& unit : page.slots[line]) {
        settle(unit);
        const Word word = load(unit);
        if (word.tag == 0) continue;
        passed |= lines_between(home_line(name_of(word.tag)), line);
        const SlotUse use = reader_.use_of(word);
        tickets += use == SlotUse::ticket;
        held += use == SlotUse::kept;
      }
    }
    const bool is_first_layout = region_.header().version < 2;  // take_over() converts these to floors
    for (Unit& unit : page.floors) {
      const std::uint64_t tag = load(unit.tag) & ~kMarkBits;
      const Known* const known = registry_.known(limit_of(tag));
      if (known != nullptr && (is_first_layout || name_of(tag) == known->floor_name)) {
        settle(unit);
      } else {
        write(unit, {});
      }
    }
    // The sweep will find out whether a slot really contains a floor.
    const std::uint64_t version = is_first_layout ? 0 : load(page.version.tag) & ~kMarkBits;
    const std::uint64_t tag = with_counts(version, held, tickets) | kFloorInSlot;
    write(page.version, {next_version(tag), passed});
  }

  void settle(Unit& unit) {
    const Word word = load(unit);
    if (word.tag == 0) return;
    const bool is_sound =
        mark_of(word) == kPlain && (is_ticket(limit_of(word.tag)) ? is_whole_ticket(word) : is_whole(word));
    if (is_sound) return;
    const std::uint64_t nobody = reference(kParticipants - 1, kNumberMask);
    write(unit, {(word.tag & ~kMarkBits) | kHeld, nobody});
    lost_.push_back(&unit);
  }

  bool is_whole(const Word& word) {
    const Known* known = registry_.known(limit_of(word.tag));
    const bool is_in_slot = known != nullptr && (known->packing.fits_slot || is_floor(word, *known));
    const std::uint64_t line = line_of(word.state);
    if (!is_in_slot && (line >= torn_.size() || torn_[line])) return false;
    const auto block = reader_.block_of(word);
    if (block && !claim(*block)) return false;
    const auto content = reader_.read(word);
    if (content && (!is_torn_ || is_ordered(content->cell.state()))) return true;
    if (block) set_used(*block, false);
    return false;
  }

  // After a machine crash, the head of a log and its events may be of different times. Only events with ascending
  // times and totals were ever written together, and only for those is the usage certain.
  static bool is_ordered(const TableCell::State& state) {
    const auto* log = std::get_if<RingLog>(&state);
    if (log == nullptr) return true;
    std::int64_t time = 0, total = 0;
    for (std::int64_t i = 1; i <= log->size(); ++i) {
      if (log->time(i) <= time || log->total(i) <= total) return false;
      time = log->time(i), total = log->total(i);
    }
    return true;
  }

  // The block of a reservation is in one page of the file: it is either the reservation's own, or an older one of
  // another owner.
  bool is_whole_ticket(const Word& word) {
    if (region_.header().version < 2 || !is_in_block(word)) return true;  // version 1 had no such blocks
    const std::uint64_t line = line_of(word.state);
    if (line >= torn_.size() || torn_[line]) return false;
    const auto block = reader_.block_of(word);
    if (!block || !claim(*block)) return false;
    if (reader_.read_reservation(word)) return true;
    set_used(*block, false);
    return false;
  }

  // False if part of the block is torn, or belongs to another slot.
  bool claim(const Block& block) {
    const std::uint64_t end = block.line + (std::uint64_t{1} << block.block_class);
    for (std::uint64_t line = block.line; line < end; ++line) {
      if (used_[line] || torn_[line]) return false;
    }
    set_used(block, true);
    return true;
  }

  void set_used(const Block& block, bool is_used) {
    const auto from = used_.begin() + static_cast<std::ptrdiff_t>(block.line);
    std::fill(from, from + (std::ptrdiff_t{1} << block.block_class), is_used);
  }

  void lay_out_arena() {
    set_none_free(region_);
    for (std::uint64_t line = 0; line < used_.size();) {
      std::uint64_t end = line;
      while (end < used_.size() && !used_[end]) ++end;
      set_free(region_, line, end);
      line = end + 1;
    }
  }

  // A key whose state is lost counts as used up. A key whose limit is lost, too, is removed.
  void spend(Unit& unit) { write(unit, spent(load(unit.tag) & ~kMarkBits)); }

  Word spent(std::uint64_t tag) {
    const Known* known = registry_.known(limit_of(tag));
    if (known == nullptr || is_ticket(limit_of(tag))) return {};
    const Limit& limit = known->limit;
    if (known->packing.fits_slot) return {tag, static_cast<std::uint64_t>(spent_bits(limit, known->packing))};
    if (name_of(tag) == known->floor_name) return {tag, spent_summary(limit, known->packing)};
    const unsigned block_class = known->packing.kind == Kind::log || known->packing.kind == Kind::holds ? 1 : 0;
    if (!take_block(actor_, 0, block_class)) return {};
    const Block block = *pending_block(actor_, 0);
    Line& head = region_.line(block.line);
    actor_.put(head.units[kState1], {std::uint64_t{block_class} << 2, 0});
    actor_.put(head.units[kState0], spent_block(head, limit, known->packing));
    write(actor_.record().pending[0], {});
    return {tag, block_state(block.line, change_of(load(actor_.record().status)))};
  }

  std::uint64_t spent_summary(const Limit& limit, const Packing& packing) const {
    const bool is_fixed = packing.kind == Kind::fixed;
    return pack_summary({is_fixed ? algorithm::fixed_window_at(limit, now_).end_us - 1 : now_, limit.permits},
                        is_fixed);
  }

  Bits spent_bits(const Limit& limit, const Packing& packing) const {
    if (packing.kind == Kind::bucket)
      return pack(algorithm::bucket_of(limit.rate, now_, limit.capacity * limit.weight), packing);
    if (packing.kind == Kind::fixed)
      return pack(algorithm::FixedWindow{algorithm::fixed_window_at(limit, now_).end_us, limit.permits}, packing);
    if (packing.kind == Kind::compact)
      return pack(algorithm::CompactLog{now_ / limit.period_us, 0, limit.permits}, packing);
    return pack(algorithm::SlidingWindow{now_ / limit.period_us, 0, limit.permits}, packing);
  }

  Word spent_block(Line& head, const Limit& limit, const Packing& packing) {
    if (packing.kind == Kind::log) {
      RingLog log;
      log.apply({0, 1, now_, limit.permits, 0});
      return log.copy(actor_, head, log_format(limit));
    }
    if (packing.kind != Kind::holds) return word_of(spent_bits(limit, packing));
    const algorithm::Holds holds{{now_ + limit.period_us, limit.permits, "lost"}};
    write_holds(actor_, head, holds);
    return holds_word(holds);
  }

  const Region& region_;
  Registry& registry_;
  const std::int64_t now_;
  bool is_torn_ = false;
  Actor actor_;
  SlotReader reader_;
  std::vector<bool> used_, torn_;  // the lines of the arena
  std::vector<Unit*> lost_;
};

}  // namespace

void count_all_keys(const Region& region) {
  std::uint64_t keys = 0;
  for (std::uint64_t i = 0; i < region.pages(); ++i) {
    for (const Unit& unit : slots_of(region.page(i))) keys += std::uint64_t{is_key(load(unit.tag))};
  }
  for (std::uint64_t who = 0; who < kParticipants; ++who) store(region.participant(who).keys, who == 0 ? keys : 0);
}

void repair(const Region& region, Registry& registry, std::int64_t now, bool is_torn) {
  Repair(region, registry, now).run(is_torn);
}

}  // namespace weir::table
