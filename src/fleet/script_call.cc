// The layout of a call, and the numbers that describe each algorithm to the script. See script_call.h. One thread.

#include "fleet/script_call.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "algorithm/calendar.h"
#include "fleet/redis_key.h"

namespace weir::fleet {
namespace {

constexpr std::size_t kFields = 5;       // of a decision: allowed, remaining, retry_after, reset_after, delay
constexpr std::size_t kShortFields = 3;  // of several alike: remaining, reset_after, delay or retry_after
constexpr std::size_t kTimesMax = 255;   // of a run: the script reads it as a byte
constexpr std::int64_t kNeverOnTheWire = -1;
constexpr std::int64_t kNoState = -(std::int64_t{1} << 53);                     // in place of a run's results
constexpr std::int64_t kDenied = 0, kAllowed = 1, kRepeated = 2, kMissing = 3;  // rulings

static_assert(std::endian::native == std::endian::little, "the script reads numbers of this byte order");

template <class T>
void append_bytes(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_number(std::string& out, std::int64_t value) { append_bytes(out, static_cast<double>(value)); }

struct Terms {
  std::int64_t x, y, z;
};

Terms terms_of(const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::fixed_window:
      return {limit.permits, limit.period_us, limit.calendar ? limit.calendar->tag() : limit.phase_us};
    case Algorithm::sliding_log:
      return {limit.permits, limit.period_us, limit.events_max};
    case Algorithm::token_bucket:
    case Algorithm::leaky_meter:
    case Algorithm::leaky_bucket:
      return {limit.capacity, limit.rate, limit.weight};
    case Algorithm::sliding_window:
    case Algorithm::concurrency:
      break;
  }
  return {limit.permits, limit.period_us, 0};
}

// Keys that are not read with the others.
bool is_behind(char mark) { return mark == redis_mark(Algorithm::sliding_log) || mark == kForgetMark; }
bool has_id(What what) { return what == What::acquire || what == What::release; }
bool has_decisions(What what) { return what != What::undo && what != What::forget; }
bool has_one_ticket(What what) { return what == What::once || what == What::write_back; }
bool has_tickets(What what) { return what == What::reserve || what == What::commit; }
bool is_same(const Limit* a, const Limit* b) { return a == b || (a != nullptr && b != nullptr && *a == *b); }
char mark_of(const Charge& charge) {
  return redis_mark(charge.limit == nullptr ? Algorithm::concurrency : charge.limit->algorithm);
}

// Milliseconds, rounded up, so that a ticket does not expire early.
std::int64_t milliseconds(Micros time) { return (time.count() + 999) / 1'000; }

Micros wait_of(std::int64_t field) { return field == kNeverOnTheWire ? kNever : Micros{field}; }

Decision decision_of(std::span<const std::int64_t> field, const Limit* limit) {
  return {.allowed = field[0] == 1,
          .limit = limit == nullptr ? 0 : limit->capacity,
          .remaining = field[1],
          .retry_after = wait_of(field[2]),
          .reset_after = Micros{field[3]},
          .delay = Micros{field[4]}};
}

Decision short_decision_of(std::span<const std::int64_t> field, const Limit* limit, bool is_allowed) {
  return {.allowed = is_allowed,
          .limit = limit == nullptr ? 0 : limit->capacity,
          .remaining = field[0],
          .retry_after = is_allowed ? Micros{0} : wait_of(field[2]),
          .reset_after = Micros{field[1]},
          .delay = is_allowed ? Micros{field[2]} : Micros{0}};
}

// Marks a write-back's decision as allowed, even where a charge of 0 or the following charge is denied.
void admit(Decision& decision) {
  decision.allowed = true;
  decision.retry_after = decision.delay = Micros{0};
}

tl::unexpected<Error> does_not_fit() {
  return fail(ErrorCode::unavailable, "the script's reply does not match the request");
}

}  // namespace

void ScriptCall::clear() {
  keys_.clear();
  places_.clear();
  items_.clear();
  uses_.clear();
  requests_ = decisions_ = ids_ = 0;
}

// Each request leads to its copy by `next`, until the copies are chained as the requests were.
void ScriptCall::replace(std::span<ScriptRequest* const> requests, std::span<ScriptRequest* const> copies) {
  WEIR_ASSERT(requests.size() == requests_ && copies.size() == requests_);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i]->next = copies[i];
  for (ScriptRequest* const copy : copies) {
    if (copy->next != nullptr) copy->next = copy->next->next;
    copy->last = copy->last->next;
  }
  for (ScriptRequest*& item : items_) item = item->next;
}

// The ticket of one key of a reservation, or of a whole request. Lengths come first, because both parts are
// untrusted.
void ScriptCall::name_ticket(std::string_view id, const Charge& charge) {
  ticket_.assign(std::to_string(id.size())).append(":").append(id);
  ticket_.push_back(mark_of(charge));
  ticket_.append(charge.key);
}

std::size_t ScriptCall::place_of(char mark, std::string_view subject, std::string_view key, const Limit* limit) {
  name_.clear();
  append_redis_key(name_, prefix_, mark, subject, key);
  const auto known = places_.find(name_);
  if (known != places_.end()) return known->second;
  Key& added = keys_.emplace_back(Key{.name = name_, .mark = mark, .limit = limit});
  places_.emplace(added.name, keys_.size() - 1);
  return keys_.size() - 1;
}

// Whether the request fits, and every key that is already here has the limit that the request brings.
bool ScriptCall::fits(const ScriptRequest& request) {
  if (is_empty()) return true;
  if (request.what == What::forget || items_.front()->what == What::forget) return false;
  const std::size_t tickets = has_tickets(request.what) ? request.charges.size() : has_one_ticket(request.what) ? 1 : 0;
  const std::size_t charges = request.charges.size();
  if (decisions_ + charges > kScriptDecisionsMax || keys_.size() + charges + tickets > kScriptKeysMax) return false;
  for (const Charge& charge : request.charges) {
    name_.clear();
    append_redis_key(name_, prefix_, mark_of(charge), subject_of(charge.key), charge.key);
    const auto known = places_.find(name_);
    if (known != places_.end() && !is_same(keys_[known->second].limit, charge.limit)) return false;
  }
  return !has_id(request.what) || ids_ < kScriptKeysMax;
}

// Joins a request of one charge to the previous one of its key if both are equal: the script then gets a count.
bool ScriptCall::join_run(ScriptRequest& request, std::size_t key) {
  const std::size_t place = keys_[key].run;
  if (place == kNone || items_[place]->charges[0].cost != request.charges[0].cost) return false;
  ScriptRequest& run = *items_[place];
  if (run.times == kTimesMax) return false;
  run.last->next = &request;
  run.last = &request;
  ++run.times;
  return true;
}

std::size_t ScriptCall::use(std::size_t key) {
  ++keys_[key].uses;
  uses_.push_back(static_cast<std::uint16_t>(key));
  return key;
}

bool ScriptCall::add(ScriptRequest& request) {
  WEIR_ASSERT(!has_decisions(request.what) || request.decisions.size() == request.charges.size());
  WEIR_ASSERT(request.what != What::commit || request.reserved.size() == request.charges.size());
  if (!fits(request)) return false;
  ++requests_;
  decisions_ += request.charges.size();
  if (has_id(request.what)) ++ids_;
  request.next = nullptr;
  request.last = &request;
  request.times = 1;
  request.has_no_state = false;
  request.keys_at = static_cast<std::uint32_t>(uses_.size());
  const bool is_single = request.what == What::charge && request.charges.size() == 1;
  if (request.what == What::forget) {
    const Charge& charge = request.charges[0];
    for (const Algorithm algorithm : kAlgorithms) {
      const std::size_t key = place_of(redis_mark(algorithm), subject_of(charge.key), charge.key, nullptr);
      keys_[use(key)].mark = kForgetMark;
    }
    items_.push_back(&request);
    return true;
  }
  for (const Charge& charge : request.charges) {
    const std::size_t key = place_of(mark_of(charge), subject_of(charge.key), charge.key, charge.limit);
    if (is_single && join_run(request, key)) return true;
    keys_[use(key)].run = is_single ? items_.size() : kNone;
  }
  if (has_tickets(request.what)) {
    for (const Charge& charge : request.charges) {
      name_ticket(request.id, charge);
      use(place_of(kTicketMark, subject_of(charge.key), ticket_, nullptr));
    }
  } else if (has_one_ticket(request.what)) {
    ticket_.assign(request.what == What::once ? "#" : "^").append(request.shared.id ? *request.shared.id : request.id);
    const bool is_named = !request.ticket_subject.empty();
    const std::string_view subject = is_named ? request.ticket_subject : subject_of(request.charges[0].key);
    use(place_of(kTicketMark, subject, ticket_, nullptr));
  }
  WEIR_ASSERT(keys_.size() <= kScriptKeysMax);
  items_.push_back(&request);
  return true;
}

// The key's name and the number of its terms. Terms are sent once, however many keys share them. It searches from the
// end, because the latest terms are the likeliest.
void ScriptCall::append_key(Key& key, std::uint16_t number, std::int64_t cost, std::int64_t now_us) {
  key.number = number;
  words_.push_back(key.name);
  std::size_t known = named_.size();
  const auto is_other = [&](const Named& named) {
    return named.key->mark != key.mark || named.cost != cost || !is_same(named.key->limit, key.limit);
  };
  while (known > 0 && is_other(named_[known - 1])) --known;
  if (known == 0) {
    named_.push_back({&key, cost});
    known = named_.size();
    append_terms(key, cost, now_us);
  }
  numbers_.push_back(static_cast<char>(known));
}

void ScriptCall::append_terms(const Key& key, std::int64_t cost, std::int64_t now_us) {
  terms_.push_back(key.mark);
  if (key.mark == kTicketMark || key.mark == kForgetMark) return;
  const Terms terms = key.limit == nullptr ? Terms{0, 0, 0} : terms_of(*key.limit);
  for (const std::int64_t number : {terms.x, terms.y, terms.z, cost}) append_number(terms_, number);
  if (key.limit == nullptr || !key.limit->calendar) return;
  const algorithm::Calendar& calendar = *key.limit->calendar;
  const algorithm::Window window = calendar.window_at(now_us);
  const std::int64_t last = window.start_us > 0 ? calendar.window_at(window.start_us - 1).start_us : window.start_us;
  for (const std::int64_t number : {last, window.start_us, window.end_us, window.next_end_us}) {
    append_number(terms_, number);
  }
}

void ScriptCall::append_item(const ScriptRequest& request) {
  const std::span<const Charge> charges = request.charges;
  const auto key = [&](std::size_t i) { append_bytes(asked_, keys_[uses_[request.keys_at + i]].number); };
  const auto list = [&](bool with_tickets) {
    asked_.push_back(static_cast<char>(charges.size()));
    for (std::size_t i = 0; i < charges.size(); ++i) {
      key(i);
      append_number(asked_, charges[i].cost);
      if (with_tickets) key(charges.size() + i);
    }
  };
  switch (request.what) {
    case What::charge:
      if (charges.size() != 1) {
        asked_.push_back('a');
        return list(false);
      }
      asked_.push_back('r');
      append_bytes(asked_, request.times);
      key(0);
      return append_number(asked_, charges[0].cost);
    case What::look:
      asked_.push_back('p');
      key(0);
      return append_number(asked_, charges[0].cost);
    case What::overdraw:
      asked_.push_back('o');
      return list(false);
    case What::once:
    case What::write_back:
      asked_.push_back(request.what == What::once ? 'i' : 'b');
      key(charges.size());
      append_number(asked_, milliseconds(request.lasts));
      return list(false);
    case What::reserve:
      asked_.push_back('v');
      append_number(asked_, milliseconds(request.lasts));
      return list(true);
    case What::commit:
      asked_.push_back('k');
      return list(true);
    case What::acquire:
    case What::release:
      asked_.push_back(request.what == What::acquire ? 'h' : 'x');
      key(0);
      if (request.what == What::acquire) append_number(asked_, charges[0].cost);
      texts_.push_back(request.id);
      return asked_.push_back(static_cast<char>(texts_.size()));
    case What::forget:
      asked_.push_back('d');
      asked_.push_back(static_cast<char>(std::size(kAlgorithms)));
      for (std::size_t i = 0; i < std::size(kAlgorithms); ++i) key(i);
      return;
    case What::undo:
      asked_.push_back('u');
      key(0);
      append_number(asked_, charges[0].cost);
      return append_number(asked_, request.charged_us);
  }
}

// Whether the state consists of numbers only.
bool ScriptCall::can_be_run(const Key& key) const {
  return key.mark != redis_mark(Algorithm::sliding_log) && key.mark != redis_mark(Algorithm::concurrency);
}

// Whether no other item uses the write-back's keys, except a run that comes later.
bool ScriptCall::can_go_with_runs(std::size_t place) const {
  const ScriptRequest& item = *items_[place];
  const auto is_alone = [&](std::uint16_t number) {
    const Key& key = keys_[number];
    return can_be_run(key) && (key.uses == 1 || (key.uses == 2 && key.run != kNone && key.run > place));
  };
  return std::ranges::all_of(keys_of(item), is_alone);
}

// The keys of the item's charges, as indexes into keys_.
std::span<const std::uint16_t> ScriptCall::keys_of(const ScriptRequest& item) const {
  return std::span(uses_).subspan(item.keys_at, item.charges.size());
}

void ScriptCall::find_runs() {
  for (Key& key : keys_) {
    key.number = 0;
    key.has_write_back = key.is_separate = false;
  }
  const auto is_write_back = [](const ScriptRequest& item) { return item.what == What::write_back; };
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (is_write_back(*items_[i]) && !can_go_with_runs(i)) ticket_of(*items_[i]).is_separate = true;
  }
  for (ScriptRequest* const one : items_) {
    ScriptRequest& item = *one;
    item.is_run = false;
    item.is_with_runs = is_write_back(item) && !ticket_of(item).is_separate;
    if (item.is_with_runs) {
      for (const std::uint16_t key : keys_of(item)) keys_[key].has_write_back = true;
    } else if (item.what == What::charge && item.charges.size() == 1) {
      const Key& key = keys_[uses_[item.keys_at]];
      item.is_run = can_be_run(key) && key.uses == (key.has_write_back ? 2 : 1);
    }
  }
}

// A key that is only written back is sent as a run of a charge of 0.
void ScriptCall::append_runs(std::uint16_t& number, std::int64_t now_us) {
  bool is_once = true;
  for (ScriptRequest* const item : items_) {
    if (item->is_run) {
      append_key(keys_[uses_[item->keys_at]], ++number, item->charges[0].cost, now_us);
      times_.push_back(static_cast<char>(item->times));
      is_once = is_once && item->times == 1;
    }
    if (!item->is_with_runs) continue;
    for (const std::uint16_t key : keys_of(*item)) {
      if (keys_[key].uses > 1) continue;
      append_key(keys_[key], ++number, 0, now_us);
      times_.push_back('\1');
    }
  }
  if (is_once) times_.clear();
}

void ScriptCall::append_write_backs(std::uint16_t& number, std::int64_t now_us) {
  std::uint16_t tickets = 0;
  std::string lasts;
  for (ScriptRequest* const item : items_) {
    if (!item->is_with_runs || ticket_of(*item).number != 0) continue;
    ++tickets;
    append_key(ticket_of(*item), ++number, 0, now_us);
    append_number(lasts, milliseconds(item->lasts));
  }
  if (tickets == 0) return;
  append_bytes(write_backs_, tickets);
  write_backs_ += lasts;
  for (ScriptRequest* const item : items_) {
    if (!item->is_with_runs) continue;
    for (std::size_t i = 0; i < keys_of(*item).size(); ++i) {
      append_bytes(write_backs_, keys_[keys_of(*item)[i]].number);
      append_bytes(write_backs_, ticket_of(*item).number);
      append_number(write_backs_, item->charges[i].cost);
    }
  }
}

std::span<const std::string_view> ScriptCall::words(std::int64_t deadline_us, std::int64_t now_us) {
  words_.clear();
  terms_.clear();
  named_.clear();
  numbers_.clear();
  write_backs_.clear();
  asked_.clear();
  texts_.clear();
  times_.clear();
  count_ = std::to_string(keys_.size());
  deadline_ = std::to_string(deadline_us);
  words_.push_back(count_);
  find_runs();
  std::uint16_t number = 0;
  append_runs(number, now_us);
  runs_ = std::to_string(number);
  append_write_backs(number, now_us);
  for (const bool is_last : {false, true}) {
    if (is_last) plain_ = std::to_string(number);
    for (Key& key : keys_) {
      if (key.number == 0 && is_behind(key.mark) == is_last) append_key(key, ++number, 0, now_us);
    }
  }
  WEIR_ASSERT(number == keys_.size() && words_.size() == 1 + keys_.size());
  for (ScriptRequest* const item : items_) {
    if (!item->is_run && !item->is_with_runs) append_item(*item);
  }
  words_.insert(words_.end(), {deadline_, runs_, plain_, terms_, numbers_, times_, write_backs_, asked_});
  words_.insert(words_.end(), texts_.begin(), texts_.end());
  return words_;
}

Result<void> ScriptCall::read_run(ScriptRequest& item, std::span<const std::int64_t> reply, std::size_t& at) {
  const Limit* const limit = item.charges[0].limit;
  const std::size_t allowed_fields = limit->algorithm == Algorithm::leaky_bucket ? 3 : 2;
  bool is_allowed = true;
  Decision decision;
  for (ScriptRequest* one = &item; one != nullptr; one = one->next) {
    if (is_allowed) {  // the first denial also applies to the later ones
      if (at < reply.size() && reply[at] == kNoState) {
        ++at;
        for (; one != nullptr; one = one->next) one->has_no_state = true;
        return {};
      }
      is_allowed = at < reply.size() && reply[at] >= 0;
      const std::size_t fields = is_allowed ? allowed_fields : 3;
      if (reply.size() - at < fields) return does_not_fit();
      const std::array<std::int64_t, kShortFields> field = {is_allowed ? reply[at] : -1 - reply[at], reply[at + 1],
                                                            fields == kShortFields ? reply[at + 2] : 0};
      decision = short_decision_of(field, limit, is_allowed);
      at += fields;
    }
    one->decisions[0] = decision;
    one->ruling = is_allowed ? Ruling::allowed : Ruling::denied;
  }
  return {};
}

// Reads the keys that no run uses. A value that is not of this version is left as it is and counts as written back.
Result<void> ScriptCall::read_write_back(ScriptRequest& item, std::span<const std::int64_t> reply, std::size_t& at) {
  for (std::size_t i = 0; i < keys_of(item).size(); ++i) {
    if (keys_[keys_of(item)[i]].uses > 1) continue;
    ScriptRequest alone{.charges = item.charges.subspan(i, 1), .decisions = item.decisions.subspan(i, 1)};
    if (auto read = read_run(alone, reply, at); !read) return read;
    Decision& decision = alone.decisions[0];
    if (alone.has_no_state) decision = {.limit = alone.charges[0].limit->capacity};
    admit(decision);
  }
  return {};
}

// For keys that a later run uses, the result is that of the run.
void ScriptCall::finish_write_back(const ScriptRequest& item) {
  for (std::size_t i = 0; i < keys_of(item).size(); ++i) {
    const Key& key = keys_[keys_of(item)[i]];
    if (key.uses == 1) continue;
    Decision& decision = item.decisions[i];
    decision = items_[key.run]->last->decisions[0];
    admit(decision);
  }
}

Result<void> ScriptCall::read_item(ScriptRequest& request, std::span<const std::int64_t> reply, std::size_t& at) {
  const auto take = [&](std::size_t count) {
    const auto part = reply.subspan(at, count);
    at += count;
    return part;
  };
  const auto short_of = [&](std::size_t count) { return reply.size() - at < count; };
  const std::span<const Charge> charges = request.charges;
  if (short_of(1)) return does_not_fit();
  const std::int64_t ruling = take(1)[0];
  if (request.what == What::charge && charges.size() == 1) {
    if (ruling < 0 || ruling > request.times) return does_not_fit();
    Decision decision;
    std::int64_t place = 0;
    for (ScriptRequest* one = &request; one != nullptr; one = one->next, ++place) {
      if (place <= ruling) {  // the first denial also applies to the later ones
        if (short_of(kShortFields)) return does_not_fit();
        decision = short_decision_of(take(kShortFields), charges[0].limit, place < ruling);
      }
      one->decisions[0] = decision;
      one->ruling = place < ruling ? Ruling::allowed : Ruling::denied;
    }
    return {};
  }
  if (ruling < kDenied || ruling > kMissing) return does_not_fit();
  request.ruling = ruling == kAllowed    ? Ruling::allowed
                   : ruling == kRepeated ? Ruling::repeated
                   : ruling == kMissing  ? Ruling::missing
                                         : Ruling::denied;
  if (!has_decisions(request.what)) return {};
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (short_of(kFields + 1) && (request.what == What::commit || short_of(kFields))) return does_not_fit();
    request.decisions[i] = decision_of(take(kFields), charges[i].limit);
    if (request.what == What::commit) request.reserved[i] = take(1)[0];
  }
  return {};
}

// Reads the ruling of each ticket of write-backs, in the order of the tickets' keys.
Result<void> ScriptCall::read_tickets(std::span<const std::int64_t> reply, std::size_t& at) {
  std::size_t first = 0, last = 0;  // their numbers
  for (ScriptRequest* const item : items_) {
    if (!item->is_with_runs) continue;
    const std::size_t number = ticket_of(*item).number;
    first = first == 0 ? number : std::min(first, number);
    last = std::max(last, number);
  }
  if (last == 0) return {};
  if (reply.size() - at < last - first + 1) return does_not_fit();
  for (ScriptRequest* const item : items_) {
    if (!item->is_with_runs) continue;
    const bool is_repeated = reply[at + ticket_of(*item).number - first] == kRepeated;
    item->ruling = is_repeated ? Ruling::repeated : Ruling::allowed;
  }
  at += last - first + 1;
  return {};
}

Result<ScriptCall::Read> ScriptCall::read(std::span<const std::int64_t> reply) {
  if (reply.size() < 2) return fail(ErrorCode::unavailable, "the script's reply is empty");
  now_us_ = reply[0];
  if (reply[1] == -1) return Read::late;
  std::size_t at = 2;
  if (auto read = read_tickets(reply, at); !read) return fail(std::move(read.error()));
  for (const bool is_first : {true, false}) {
    for (ScriptRequest* const item : items_) {
      if ((item->is_run || item->is_with_runs) != is_first) continue;
      auto read = item->is_run         ? read_run(*item, reply, at)
                  : item->is_with_runs ? read_write_back(*item, reply, at)
                                       : read_item(*item, reply, at);
      if (!read) return fail(std::move(read.error()));
    }
  }
  for (ScriptRequest* const item : items_) {
    if (item->is_with_runs) finish_write_back(*item);
  }
  if (at != reply.size()) return fail(ErrorCode::unavailable, "the script's reply is longer than expected");
  return Read::answered;
}

}  // namespace weir::fleet
