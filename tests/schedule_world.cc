// See schedule_world.h. schedule_harm.cc looks for damage.

#include "schedule_world.h"

#include <cstring>

#include "algorithm/limit.h"
#include "schedule.h"
#include "schedule_hook.h"
#include "table/sweep.h"

namespace weir::test {
namespace {

using table::Act;
using table::Actor;
using table::Debit;
using table::Name;
using table::Ticket;

constexpr std::int64_t kLong_us = 3'600'000'000, kShort_us = 1'000'000'000;  // logs of the two keep events in two ways
constexpr std::int64_t kStart_us = 400'000 * kLong_us + 1'000'000;
constexpr std::uint64_t kArenaBytes = 64 * 1024, kHogged = 960;
constexpr std::uint64_t kFirstOfMany = 64;  // serials of strangers, of ids and of reservations begin here
constexpr std::uint64_t kIdSerial = 1'000, kReservedSerial = 2'000;

unsigned freed = 0;  // of the setting

// A made-up hash that has this home line.
Name name_at(std::uint32_t line, std::uint64_t serial) {
  const std::uint64_t high = ((std::uint64_t{line} << 30) + table::kLines - 1) / table::kLines;
  return {0, (high + 1) << 34 | serial << table::kNameShift};
}

// Four to a line, in a full page; the last of the four came from the line before.
Name stranger(std::size_t i) {
  const auto line = static_cast<std::uint32_t>(i / table::kSlotsInLine);
  return name_at(line > 0 && i % table::kSlotsInLine == 3 ? line - 1 : line, kFirstOfMany + i);
}

// 8 bytes, as a store makes them of an id.
std::string_view hold_id(std::size_t id) {
  static const std::uint64_t kIdBytes[kIds] = {0x1111, 0x2222};
  return {reinterpret_cast<const char*>(&kIdBytes[id]), sizeof kIdBytes[id]};
}

}  // namespace

unsigned freed_max() { return freed; }

Micros StoppedClock::now() const {
  before_access();
  return Micros{now_us};
}

World::World()
    : clock_(std::make_shared<StoppedClock>()),
      table_(table::Table::open({.keys = 1, .arena_bytes = kArenaBytes, .clock = clock_}).value()),
      registry_(std::make_unique<table::Registry>(table_->region(), nullptr)),
      tester_(table_->region(), kTester) {
  clock_->now_us = kStart_us;
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window,
                                    Algorithm::sliding_log, Algorithm::concurrency}) {
    for (std::int64_t permits = 1; permits <= kCapacityMax; ++permits) {
      const std::int64_t period = algorithm == Algorithm::sliding_log && permits % 2 == 0 ? kShort_us : kLong_us;
      limits_.push_back(std::make_unique<const Limit>(
          algorithm == Algorithm::token_bucket ? algorithm::make_bucket(algorithm, permits, period, permits).value()
                                               : algorithm::make_window(algorithm, permits, period).value()));
    }
  }
  const auto add_bucket = [&](std::int64_t permits, std::int64_t period) {
    const Limit limit = algorithm::make_bucket(Algorithm::token_bucket, permits, period, permits).value();
    return limits_.emplace_back(std::make_unique<const Limit>(limit)).get();
  };
  slight_ = add_bucket(1'000, kLong_us);
  kin_ = limit_for(Algorithm::token_bucket, kCapacityMax);
  spent_ = add_bucket(1, 2 * kLong_us);
  hog_arena(region().arena_lines() - kHogged);
  for (const auto& limit : limits_) {  // met by the table, so that it has its fast way; numbers are the same for all
    Debit debit{.name = name_at(0, 1), .limit = limit.get(), .cost = 1};
    if (limit->algorithm == Algorithm::concurrency) continue;
    const auto before = snapshot();
    static_cast<void>(table_->charge({&debit, 1}, {}, kStart_us));
    restore(before);
  }
  for (const auto& limit : limits_) {
    registry_->number_of(*limit, kTester, 0);
    if (limit->algorithm == Algorithm::sliding_log) registry_->number_of(*limit, kTester, 0, table::Form::compact);
  }
  beginnings_[0] = snapshot();
  const Limit* const fillers[] = {spent_, slight_, kin_};  // in the order of Beginning
  for (std::size_t i = 0; i < std::size(fillers); ++i) {
    restore(beginnings_[0]);
    fill_page(*fillers[i]);
    beginnings_[i + 1] = snapshot();
  }
  const char* limits = reinterpret_cast<const char*>(&region().limit(0));
  limits_met_.assign(limits, limits + sizeof(table::RegistryEntry) * table::kLimitsMax);
}

// The header, a page, the free part of the arena, and what participants have but for most of their entries.
World::Snapshot World::snapshot() const {
  constexpr std::size_t kEntries = 24;
  Snapshot all;
  const auto add = [&](void* place, std::size_t bytes) {
    char* first = static_cast<char*>(place);
    all.push_back({first, {first, first + bytes}});
  };
  add(&region().header(), sizeof(table::Header));
  for (unsigned i = 0; i < table::kClasses; ++i) {
    add(&region().free_map(i, 0), region().free_map_units(i) * sizeof(table::Unit));
  }
  add(&region().page(0), sizeof(table::Page));
  add(&region().line(kHogged), sizeof(table::Line) * (region().arena_lines() - kHogged));
  for (std::uint64_t who = 0; who <= kTester; ++who) {
    add(&region().participant(who), offsetof(table::Participant, entries) + kEntries * sizeof(table::Entry));
  }
  return all;
}

void World::restore(const Snapshot& snapshot) {
  for (const Span& span : snapshot) std::memcpy(span.place, span.bytes.data(), span.bytes.size());
}

void World::fill_page(const Limit& limit) {
  for (std::size_t i = 0; i < table::kSlots; ++i) {
    Debit debit{.name = stranger(i), .limit = &limit, .cost = 1};
    static_cast<void>(table::Transaction(tester_, *registry_, *clock_, {&debit, 1}, {}, kStart_us).run());
  }
  region().page(0).version.tag += 3 << 2;  // the second insertion from here on is a 32nd
}

// Keeps so much of the arena in the tester's own hands that the rest is small.
void World::hog_arena(std::uint64_t free_lines) {
  std::uint32_t place = 0;
  while (table::pending_block(tester_, place)) ++place;
  std::uint64_t free = table::free_lines(region());
  for (unsigned block_class = table::kClasses; block_class-- > 0;) {
    while (free >= free_lines + (std::uint64_t{1} << block_class) && table::take_block(tester_, place, block_class)) {
      free -= std::uint64_t{1} << block_class;
      ++place;
    }
  }
}

const Limit* World::limit_for(Algorithm algorithm, std::int8_t capacity) const {
  for (const auto& limit : limits_) {
    if (limit->algorithm == algorithm && limit->permits == capacity) return limit.get();
  }
  return nullptr;
}

void World::begin(const Setting& setting) {
  if (setting_.are_limits_new || setting.are_limits_new) {
    registry_ = std::make_unique<table::Registry>(region(), nullptr);
    std::memcpy(&region().limit(0), limits_met_.data(), limits_met_.size());
    if (setting.are_limits_new) std::memset(static_cast<void*>(&region().limit(0)), 0, limits_met_.size());
  }
  restore(beginnings_[static_cast<std::size_t>(setting.beginning)]);
  setting_ = setting;
  freed = setting.freed_max;
  clock_->now_us = kStart_us;
  epoch_ = 0;
  ticks_ = !setting.is_time_still;
  trouble_.clear();
  tester_ = Actor(region(), kTester);
  if (setting.arena_lines < 64) hog_arena(setting.arena_lines);
  for (std::size_t k = 0; k < kKeys; ++k) {
    names_[k] = name_at(setting.lines[k], k + 1);
    key_limits_[k] = limit_for(setting.algorithms[k], setting.rules.capacity[k]);
    if (setting.algorithms[k] == Algorithm::token_bucket) ticks_ = false;
  }
  for (unsigned i = 0; i < setting.neighbours; ++i) {
    Debit debit{.name = name_at(setting.lines[0], kFirstOfMany + table::kSlots + i), .limit = slight_, .cost = 1};
    static_cast<void>(table::Transaction(tester_, *registry_, *clock_, {&debit, 1}, {}, kStart_us).run());
  }
}

void World::jump() {
  ++epoch_;
  clock_->now_us += 10 * kLong_us;
}

void World::recover(std::uint64_t who) {
  Actor actor(region(), who);
  actor.recover();
  table::give_all_blocks(actor);
  if (!setting_.are_limits_new) return;
  const Schedule::Pause pause;  // it looks at every limit that there can be
  registry_->recover(who);
}

void World::perform(Actor& actor, Action& action) {
  if (ticks_) ++clock_->now_us;
  const std::int64_t now = clock_->now_us;
  action.epoch = epoch_;
  action.last_epoch = setting_.rules.last_epoch;
  switch (action.doing) {
    case Doing::charge:
    case Doing::identified:
    case Doing::reserve:
    case Doing::commit:
      action.answer = charge(actor, action, now);
      break;
    case Doing::acquire:
    case Doing::release:
      action.answer = hold(actor, action, now);
      break;
    case Doing::forget:
      action.answer = forget(actor, names_[action.key], now) ? Answer::found : Answer::not_found;
      break;
    case Doing::evacuate:
      action.answer = forget(actor, stranger(action.key), now) ? Answer::found : Answer::not_found;
      break;
    case Doing::sweep: {
      table::SlotReader reader(actor, *registry_);
      table::sweep_page(actor, reader, region().page(0), now);
      break;
    }
  }
  action.last_epoch = epoch_;
}

Answer World::charge(Actor& actor, Action& action, std::int64_t now) {
  std::vector<Debit> debits = debits_of(action);
  std::vector<Ticket> tickets = tickets_of(action, now);
  const bool is_plain = action.doing == Doing::charge && debits.size() == 1;
  Answer answer = Answer::denied;
  if (is_plain && action.id == 0 && !setting_.are_limits_new && table_->charge_fast(debits.front(), now)) {
    answer = debits.front().decision.allowed ? Answer::allowed : Answer::denied;
  } else {
    answer = answer_of(table::Transaction(actor, *registry_, *clock_, debits, tickets, now).run());
  }
  if (action.doing != Doing::charge || answer != Answer::allowed) return answer;
  for (std::size_t k = 0, i = 0; k < kKeys; ++k) {
    if ((action.asked >> k & 1) != 0) action.left[k] = static_cast<std::int8_t>(debits[i++].decision.remaining);
  }
  return answer;
}

std::vector<Debit> World::debits_of(const Action& action) const {
  std::vector<Debit> debits;
  for (std::size_t k = 0; k < kKeys; ++k) {
    if ((action.asked >> k & 1) == 0) continue;
    debits.push_back({.name = names_[k],
                      .limit = key_limits_[k],
                      .cost = action.costs[k],
                      .act = action.doing == Doing::commit ? Act::settle : Act::charge});
  }
  return debits;
}

std::vector<Ticket> World::tickets_of(const Action& action, std::int64_t now) const {
  std::vector<Ticket> tickets;
  const std::int64_t expires = now + 100 * kLong_us;
  if (action.doing == Doing::identified) {
    tickets.push_back({.name = name_at(setting_.lines[0], kIdSerial + action.id), .expires_us = expires});
  }
  for (std::size_t k = 0; k < kKeys; ++k) {
    const bool takes = action.doing == Doing::commit;
    if ((!takes && action.doing != Doing::reserve) || (action.asked >> k & 1) == 0) continue;
    tickets.push_back({.name = name_at(setting_.lines[k], kReservedSerial + action.id * kKeys + k),
                       .kind = table::kReservation,
                       .take = takes,
                       .expires_us = expires});
  }
  return tickets;
}

Answer World::hold(Actor& actor, const Action& action, std::int64_t now) {
  const bool acquires = action.doing == Doing::acquire;
  Debit debit{.name = names_[action.key],
              .limit = acquires ? key_limits_[action.key] : nullptr,
              .cost = acquires ? 1 : -1,
              .act = acquires ? Act::acquire : Act::release,
              .id = hold_id(action.id)};
  const Answer answer = answer_of(table::Transaction(actor, *registry_, *clock_, {&debit, 1}, {}, now).run());
  if (acquires || answer == Answer::failed) return answer;
  return debit.found ? Answer::allowed : Answer::denied;
}

bool World::forget(Actor& actor, const Name& name, std::int64_t now) {
  Debit debit{.name = name, .cost = -1, .act = Act::forget};
  answer_of(table::Transaction(actor, *registry_, *clock_, {&debit, 1}, {}, now).run());
  return debit.found;
}

Answer World::answer_of(const Result<table::Ruling>& ruling) {
  if (!ruling) {
    trouble_ = ruling.error().message;
    return Answer::failed;
  }
  switch (*ruling) {
    case table::Ruling::allowed:
      return Answer::allowed;
    case table::Ruling::repeated:
      return Answer::repeated;
    case table::Ruling::missing:
      return Answer::missing;
    case table::Ruling::denied:
      break;
  }
  return Answer::denied;
}

table::Unit* World::find(const Name& name) {
  for (auto& line : region().page(0).slots) {
    for (table::Unit& unit : line) {
      if (unit.tag != 0 && table::name_of(unit.tag) == name.name) return &unit;
    }
  }
  return nullptr;
}

// What a slot has spent now.
std::int8_t World::used_in(const table::Word& slot) {
  table::SlotReader reader(tester_, *registry_);
  auto content = reader.read(slot);
  if (!content || content->packing.kind == table::Kind::holds) return 0;
  content->cell.prepare(clock_->now_us);
  const Decision peek = content->cell.decide(clock_->now_us, 0).decision;
  return static_cast<std::int8_t>(peek.limit - peek.remaining);
}

State World::look() {
  State state;
  table::SlotReader reader(tester_, *registry_);
  for (std::size_t k = 0; k < kKeys; ++k) {
    table::Unit* unit = find(names_[k]);
    if (unit == nullptr) continue;
    const table::Word word = tester_.read(*unit);
    if (setting_.rules.is_page_full) state.present |= static_cast<std::uint8_t>(1u << k);
    state.used[k] = used_in(word);
    if ((setting_.rules.holds >> k & 1) == 0) continue;
    const auto content = reader.read(word);
    for (const algorithm::Hold& hold :
         content ? std::get<algorithm::Holds>(content->cell.state()) : algorithm::Holds{}) {
      for (std::size_t id = 0; id < kIds; ++id) {
        if (hold.id == hold_id(id) && hold.expires_us > clock_->now_us)
          state.held[k] |= static_cast<std::uint8_t>(1u << id);
      }
    }
    state.used[k] = static_cast<std::int8_t>(std::popcount(unsigned{state.held[k]}));
  }
  for (std::size_t id = 0; id < kIds; ++id) {
    if (find(name_at(setting_.lines[0], kIdSerial + id)) != nullptr) state.ids |= static_cast<std::uint8_t>(1u << id);
    for (std::size_t k = 0; k < kKeys; ++k) {
      const table::Unit* unit = find(name_at(setting_.lines[k], kReservedSerial + id * kKeys + k));
      const auto read = unit != nullptr ? reader.read_reservation(table::load(*unit)) : std::nullopt;
      if (read) state.reserved[id][k] = static_cast<std::int8_t>(read->reserved.amount + 1);
    }
  }
  if (!setting_.rules.is_page_full) return state;
  for (auto& line : region().page(0).slots) {
    for (table::Unit& unit : line) state.room = static_cast<std::int8_t>(state.room + (unit.tag == 0 ? 1 : 0));
  }
  for (std::size_t i = 0; i < kStrangers; ++i) {
    if (find(stranger(i)) == nullptr) state.evacuated |= static_cast<std::uint8_t>(1u << i);
  }
  for (table::Unit& unit : region().page(0).floors) {
    const table::Word word = tester_.read(unit);
    if (word.tag != 0 && setting_.rules.are_strangers_kin) state.floor = used_in(word);
  }
  return state;
}

}  // namespace weir::test
