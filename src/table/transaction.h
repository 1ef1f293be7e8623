// One request on the table. It reads all its keys, decides, and makes all changes as one event or none.
//
// It reads, computes the next value of every word, and submits that as an operation. If a word has changed meanwhile,
// it starts again. A denial is true at the reading it was made from. It writes nothing, except the correction of a
// clock that went back. A slot names the version of the limit that last admitted. A request under another version
// decides on the state that is there. Only if it is admitted does the slot become that version's. A block that is
// needed is taken and filled before the operation; it becomes the key's in the same event.
//
// A key that is new to its page starts from the floors of its family (floor.h). If it is admitted and there is no
// free slot for it, a slot is freed first (eviction.h) and the request starts again. If none can be freed, it is
// denied.
//
// A new or growing log without a block is kept as two counts in its slot. It admits no more than the log would, and
// at least half (algorithm/compact_log.h). Once many blocks are free again, the next request that it admits turns it
// into a log. The log's events have the latest times that they may have had.
//
// `now` may be old because the thread was suspended. With an old `now`, a key would see time run backwards and free
// used permits. So if a key is ahead of now, has another version of the limit or is new, the transaction reads the
// clock again first. A key goes back only if the clock really was set back.
//
// One object per request, on the thread of its actor. Tested by tests/store_contract_test.cc,
// tests/full_table_test.cc and the tests beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/few.h"
#include "table/eviction.h"
#include "weir/clock.h"

namespace weir::table {

enum class Act : std::uint8_t {
  charge,
  look,      // the decision a charge would get; changes nothing
  overdraw,  // charges what it can, at most to full; never denied
  settle,    // a reservation whose ticket is taken: refunds the unused part, or overdraws the excess
  refund,    // negative cost: refunds what was charged at an earlier time, as far as it still counts
  acquire,   // permits in flight
  release,
  forget,
};

// One key of a request, and its answer.
struct Debit {
  Name name{};
  const Limit* limit = nullptr;  // null: the limit that the key has (refund, release, forget)
  std::int64_t cost = 0;
  Act act = Act::charge;
  std::string_view id{};                        // acquire, release: 8 bytes
  const algorithm::Charged* charged = nullptr;  // refund; for a settlement it comes from the ticket
  std::uint64_t family = 0;                     // of the limit; see weir::Charge
  bool found = false;                           // release, forget: something was there
  std::int64_t returned = 0;                    // settle, refund: the refunded permits
  Decision decision{};
};

// An idempotency id: a slot that says until when the id is known. Or a reservation of the debit with the same index,
// which also has a block (slot.h).
struct Ticket {
  Name name{};
  std::uint32_t kind = kRequest;
  bool take = false;  // true: it is taken; false: it is issued
  std::int64_t expires_us = 0;
  Place place{};                       // where it was found
  SlotReader::ReservationRead read{};  // what it says, if it is taken
};

enum class Ruling : std::uint8_t {
  allowed,
  denied,
  repeated,  // a ticket to be issued already exists: nothing is charged, decisions are peeks
  missing,   // a ticket to be taken does not exist: nothing happened
};

class Transaction final : public Rebinder {
 public:
  Transaction(Actor& actor, Registry& registry, const Clock& clock, std::span<Debit> debits, std::span<Ticket> tickets,
              std::int64_t now);

  Result<Ruling> run();

 private:
  enum class Outcome : std::uint8_t { done, again, denied, missing, failed };

  // A debit in progress.
  struct Case {
    Place place;
    bool is_from_floor = false;      // the content is what evicted keys had used
    std::optional<Content> content;  // the key's content, not ahead of now
    std::uint32_t number = 0;        // of the content's limit, if the slot already names it
    std::int64_t cost = 0;
    bool moved = false;    // content differs from what is stored, and the difference stays
    bool changed = false;  // the state to store differs from content
    bool was_alive = false;
    bool is_compact = false;       // it is stored as two counts
    bool has_other_limit = false;  // the state is of another version of the debit's limit
    std::int64_t returned = 0;
    std::int64_t charged_us = 0;  // the charge counts from then, if that is later than now_
    algorithm::Stepped<algorithm::Proposal> outcome{};

    Decision& decision() { return outcome.decision; }
    // The state of a log that has no block, or null.
    const algorithm::CompactLog* counts() const {
      return content ? std::get_if<algorithm::CompactLog>(&content->cell.state()) : nullptr;
    }
    bool is_fresh() const { return outcome.decision.reset_after.count() == 0; }
  };

  Outcome attempt(unsigned tries);
  Outcome look_at_tickets();
  Outcome look_at_ticket(Ticket& ticket);
  Outcome look_at(std::size_t i);
  Outcome look_at_absent(Case& one, const Debit& debit, const Known* known);
  void start_from_floors(Case& one, const Limit& limit);
  Outcome catch_up(const Case& one);
  std::int64_t read_clock() const;
  Outcome bring_to_now(Case& one, const Debit& debit);
  void decide(Case& one, const Debit& debit);
  void overdraw(Case& one, const Limit& limit);
  void refund(Case& one, const Debit& debit, const Limit& limit);
  static const Limit& limit_of_next(const Case& one, const Debit& debit);
  // The limit that decides: that of the debit, or the key's own.
  static const Limit& ruling_limit(const Debit& debit, const Content& content) {
    return debit.limit != nullptr ? *debit.limit : content.cell.limit();
  }
  void charge_nothing(Case& one, const Limit& limit) const;
  void only_look(Case& one, const Limit& limit);
  Outcome deny(unsigned tries);
  bool are_cases_unchanged();
  bool are_tickets_unchanged();
  bool commit(unsigned tries);

  // The next state of a key, as changes of words.
  Outcome store(std::size_t i);
  Outcome store_in_block(std::size_t i, const TableCell::State& state, std::uint32_t number);
  bool take_block_or_reclaim(std::uint32_t place, unsigned block_class);
  Outcome store_in_place(Case& one, const TableCell::State& state, const Packing& packing, std::uint32_t number);
  Outcome release_in_place(std::size_t i);
  bool change_slot_of_block(const Case& one, std::uint64_t tag);
  Outcome replace_slot(std::size_t i, const Word& next, const std::optional<Block>& fresh_block);
  enum class Inserted : std::uint8_t { key, held, ticket };
  Outcome insert_under_version(const Place& place, Inserted what, std::size_t debit);
  Outcome count_kept(const Place& place, Inserted what, std::size_t debit, std::uint64_t& tag);
  Outcome need_room(std::size_t debit, const Place& place, const Name& name, std::uint64_t family,
                    Eviction::Wanted wanted);
  Outcome need_room(std::size_t i, Eviction::Wanted wanted);  // for a debit
  Outcome spare_blocks(std::size_t i, bool is_kept);
  bool are_blocks_scarce(std::uint64_t part);
  Outcome make_room(unsigned tries);
  Outcome deny_for_room(std::size_t debit, std::int64_t wait_us);
  void count_denial();
  void count_compacted(const Case& one);
  Outcome stay(const Case& one);
  Outcome stay_absent(const Place& place);
  Outcome store_ticket(std::size_t i);
  Outcome take_ticket(std::size_t i);
  Outcome issue_reservations();
  Outcome set_pending(std::uint32_t place, const std::optional<Block>& before, const std::optional<Block>& after);
  Outcome store_next_in_block(std::size_t i, std::uint32_t number);
  Outcome store_compact(std::size_t i);
  std::optional<Outcome> store_expanded(std::size_t i, const Limit& limit);
  std::optional<Outcome> store_counts(std::size_t i, const algorithm::CompactLog& counts);
  void answer_from(std::size_t i, TableCell::State state);
  Outcome change_nothing(std::size_t i);
  static std::uint64_t next_in_slot(const Case& one, const Packing& packing);
  Outcome deny_growth(std::size_t i, const Limit& limit);

  bool rebind(Entry& entry, const Word& seen) override;
  bool rebind(Case& one, const Debit& debit, Entry& entry, const Word& seen);
  Outcome fail_with(ErrorCode code, std::string message);
  Outcome fail_damaged();
  static bool is_still_there(const Case& one);
  Outcome fail_unless_moved(const Case& one);
  static bool makes_sense(const Case& one, const Debit& debit);
  void give_blocks();

  Actor& actor_;
  Registry& registry_;
  const Clock& clock_;
  const std::span<Debit> debits_;
  const std::span<Ticket> tickets_;
  std::int64_t now_;
  bool is_repeated_ = false;    // a ticket exists already: only look
  bool rebind_denied_ = false;  // a word changed so much that the request is denied
  std::int64_t keys_added_ = 0;
  bool has_blocks_ = false;  // pending units may contain some
  // This debit, or a ticket, has no free slot or block.
  struct Need {
    std::size_t debit = 0;
    Eviction::Room room{};
  };
  std::optional<Need> need_;
  std::size_t spared_ = 0, freed_ = 0;  // how often other keys had to give up a block, over all tries
  // None can be freed: this debit is denied for that, and may be retried after the wait.
  struct NoRoom {
    std::size_t debit = 0;
    std::int64_t wait_us = 0;
  };
  std::optional<NoRoom> no_room_;
  SlotReader reader_;
  Finder finder_;
  Eviction eviction_;
  Changes changes_;
  base::Few<Case, kChargesMax> cases_;
  base::Few<Name, 2 * kChargesMax> names_;
  std::optional<Error> error_;
};

}  // namespace weir::table
