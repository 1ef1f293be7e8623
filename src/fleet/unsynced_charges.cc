// The inboxes, where threads append charges, and the book. See unsynced_charges.h.
#include "fleet/unsynced_charges.h"

namespace weir::fleet {
namespace {

// Each thread has its own memory for this variable, some pages apart, so its address selects an inbox.
std::size_t own_inbox(std::size_t inboxes) {
  static thread_local const char own = 0;
  return (reinterpret_cast<std::uintptr_t>(&own) >> 12) % inboxes;
}

}  // namespace

// Adds later costs of a key to its existing line, if that is easily found. A refund gets its own line: it is capped
// by what there was at its time.
bool UnsyncedCharges::List::add_to_known(const Line& more, const Limit& limit) {
  const std::size_t place = recent[static_cast<std::uint64_t>(more.mark) % kRecent];
  if (more.cost <= 0 || place >= lines.size() || lines[place].mark != more.mark) return false;
  Line& line = lines[place];
  if (line.cost <= 0 || !(limits[line.limit] == limit) || line.local_usage.is_known() != more.local_usage.is_known() ||
      line.local_usage.is_least() || more.local_usage.is_least())
    return false;
  line.cost += more.cost;
  line.until = std::max(line.until, more.until);
  line.charged_us = std::min(line.charged_us, more.charged_us);
  if (more.local_usage.is_known()) line.local_usage.take(more.local_usage);
  return true;
}

void UnsyncedCharges::List::clear() {
  lines.clear();
  limits.clear();
  names.clear();
  marks.fill(0);
  has_refunds = false;
}

bool UnsyncedCharges::List::may_have(KeyMark mark) const {
  const std::size_t bit = static_cast<std::uint64_t>(mark) / kRecent % kMarkBits;  // other bits than those for `recent`
  return (marks[bit / 64] >> bit % 64 & 1) != 0;
}

void UnsyncedCharges::List::set_mark(KeyMark mark) {
  const std::size_t bit = static_cast<std::uint64_t>(mark) / kRecent % kMarkBits;
  marks[bit / 64] |= std::uint64_t{1} << bit % 64;
}

void UnsyncedCharges::add(const KnownKey& key, const Limit& limit, std::int64_t cost, Micros until,
                          LocalUsage local_usage, std::int64_t charged_us) {
  Line line{.mark = key.mark, .cost = cost, .until = until, .local_usage = local_usage, .charged_us = charged_us};
  const bool is_refund = cost < 0 && local_usage.is_known();
  if (is_refund) line.local_usage.at = Micros{0};  // before all charges with the same count of refunds
  Inbox& inbox = inboxes_[own_inbox(kInboxes)];
  bool is_full = false, is_too_much = false;
  {
    const base::MutexLock lock(inbox.mutex);
    List& list = inbox.list;
    if (list.add_to_known(line, limit)) return;
    if (list.limits.empty() || !(list.limits.back() == limit)) list.limits.push_back(limit);
    line.limit = static_cast<std::uint32_t>(list.limits.size() - 1);
    list.lines.push_back(line);
    list.names.append(key.name);  // if this throws, the line has no name and is lost
    list.lines.back().name_size = static_cast<std::uint32_t>(key.name.size());
    list.recent[static_cast<std::uint64_t>(key.mark) % kRecent] = static_cast<std::uint16_t>(list.lines.size() - 1);
    list.set_mark(key.mark);
    list.has_refunds = list.has_refunds || is_refund;
    inbox.has_lines.store(true);
    if (!has_lines_.load()) has_lines_.store(true);
    is_full = list.lines.size() >= kLinesMax;
    if (is_full) is_too_much = !put_aside(list);
  }
  if (is_too_much) {
    tidy();
  } else if (is_full && on_full_) {
    on_full_();
  }
}

// Returns false if there are too many full lists.
bool UnsyncedCharges::put_aside(List& list) {
  const base::MutexLock lock(lists_mutex_);
  std::swap(full_.emplace_back(), list);
  swap_for_empty(list);
  return full_.size() < kFullMax;
}

// A reused list already has memory.
void UnsyncedCharges::swap_for_empty(List& list) {
  if (spare_.empty()) return;
  list = std::move(spare_.back());
  spare_.pop_back();
}

// Releases the lock between lists, because other threads need the book, too.
void UnsyncedCharges::tidy() {
  while (true) {
    const base::MutexLock lock(mutex_);
    List list;
    {
      const base::MutexLock lists(lists_mutex_);
      if (full_.empty()) return;
      list = std::move(full_.front());
      full_.erase(full_.begin());
    }
    enter(list, false);
    enter(list, true);
    keys_.store(book_.size());
    use_again(list);
  }
}

void UnsyncedCharges::use_again(List& list) {
  list.clear();
  const base::MutexLock lock(lists_mutex_);
  if (list.lines.capacity() > 0 && spare_.size() < kFullMax) spare_.push_back(std::move(list));
}

// Inboxes first: a list that is put aside meanwhile is found among the full ones, and mutex_ lets no list leave those.
bool UnsyncedCharges::may_have_line(KeyMark mark) {
  for (Inbox& inbox : inboxes_) {
    if (!inbox.has_lines.load()) continue;
    const base::MutexLock lock(inbox.mutex);
    if (inbox.list.may_have(mark)) return true;
  }
  const base::MutexLock lock(lists_mutex_);
  return std::ranges::any_of(full_, [&](const List& list) { return list.may_have(mark); });
}

void UnsyncedCharges::enter_lines_of(KeyMark mark) {
  if (has_lines_.load() && may_have_line(mark)) enter_all();
}

// A line written after the exchange sets has_lines_ again.
void UnsyncedCharges::enter_all() {
  keys_.fetch_add(1);  // so that no reader sees everything empty meanwhile
  if (has_lines_.exchange(false)) {
    std::vector<List> lists;
    for (Inbox& inbox : inboxes_) {
      const base::MutexLock lock(inbox.mutex);
      if (inbox.list.lines.empty()) continue;
      std::swap(lists.emplace_back(), inbox.list);
      inbox.has_lines.store(false);
      const base::MutexLock spares(lists_mutex_);
      swap_for_empty(inbox.list);
    }
    std::vector<List>
        full;  // taken after the inboxes, so that lists put aside meanwhile are included; but entered first
    {
      const base::MutexLock lock(lists_mutex_);
      full.swap(full_);
    }
    for (const bool is_of_refunds : {false, true}) {
      for (const std::vector<List>* const some : {&full, &lists}) {
        for (const List& list : *some) enter(list, is_of_refunds);
      }
    }
    for (std::vector<List>* const some : {&full, &lists}) {
      for (List& list : *some) use_again(list);
    }
    for (const State& state : refund_only_) {
      if (const UnsyncedCharge* const known = book_.find(state); known != nullptr && known->cost == 0)
        book_.erase(state);
    }
    refund_only_.clear();
  }
  keys_.store(book_.size());
}

// Charges first and then refunds, because the charge of a refund may be in another list. A refund without local usage
// is in the list of its charge, in order.
void UnsyncedCharges::enter(const List& list, bool is_of_refunds) {
  if (is_of_refunds && !list.has_refunds) return;
  std::string_view names = list.names;
  for (const Line& line : list.lines) {
    if (line.name_size == 0) continue;
    const bool is_refund = line.cost < 0 && line.local_usage.is_known();
    if (is_refund == is_of_refunds) enter(names.substr(0, line.name_size), line, list.limits[line.limit]);
    names.remove_prefix(line.name_size);
  }
}

void UnsyncedCharges::enter(std::string_view name, const Line& line, const Limit& limit) {
  const State state = state_of(line.mark, limit);
  UnsyncedCharge* known = book_.find(state);
  const bool is_new = known == nullptr;
  if (is_new) {
    if (book_.size() >= keys_max_) {
      if (line.cost > 0) dropped_permits_ += static_cast<std::uint64_t>(line.cost);
      return;
    }
    if (line.cost <= 0) refund_only_.push_back(state);
    known = book_.insert(state, {.name = std::string(name), .mark = line.mark}).first;
  }
  UnsyncedCharge& charge = *known;
  // Keeps the higher version of the limit: under the lower one, Redis would have less capacity than was admitted.
  if (is_new || limit.capacity > charge.limit.capacity) charge.limit = limit;
  const bool is_elsewhere = line.cost < 0 && line.charged_us < charge.since_us;
  if (is_elsewhere) refund_in_flight(state, line);
  const std::int64_t cost = is_elsewhere    ? 0
                            : line.cost < 0 ? -charge.lowered_by(-line.cost, line.local_usage, charge.cut)
                                            : line.cost;
  if (line.local_usage.is_known() && (charge.local_usage.is_known() || !line.local_usage.is_least())) {
    charge.local_usage.take(line.local_usage);
  } else {
    charge.outside = std::max<std::int64_t>(0, charge.outside + cost);
  }
  const std::int64_t used = std::max<std::int64_t>(0, charge.local_usage.most);
  const std::int64_t most = charge.local_usage.is_known() ? used + charge.outside : used;
  const std::int64_t wanted = charge.cost + cost;
  if (wanted > most) charge.cut += wanted - most;
  charge.cost = std::clamp<std::int64_t>(wanted, 0, most);
  charge.until = std::max(charge.until, line.until);
  if (cost > 0) charge.since_us = std::min(charge.since_us, line.charged_us);
}

// The charge has been taken. If it is no longer in flight either, Redis has it.
void UnsyncedCharges::refund_in_flight(const State& state, const Line& line) {
  InFlight* const known = in_flight_.find(state);
  if (known != nullptr) known->refunds.push_back({line.charged_us, -line.cost, line.local_usage});
}

// The refunds of this charge, at most all of it.
std::int64_t UnsyncedCharges::InFlight::take_refunds(const UnsyncedCharge& charge, std::int64_t& cut_left) {
  std::int64_t taken = 0;
  for (Refund& refund : refunds) {
    if (refund.charged_us < charge.since_us) continue;
    taken += charge.lowered_by(std::exchange(refund.cost, 0), refund.after, cut_left);
  }
  std::erase_if(refunds, [](const Refund& one) { return one.cost == 0; });
  return std::min(taken, charge.cost);
}

// lowered_by()
//
// How much of a refund is still to be subtracted from the cost. If `local_usage` is of a later change, it included the
// refund, and may have cut the cost by it. If nothing was used after the refund, it is unknown how much was refunded,
// but all earlier charges are cut.
std::int64_t UnsyncedCharge::lowered_by(std::int64_t refund, const LocalUsage& after, std::int64_t& cut_left) const {
  if (!after.is_known() || !local_usage.is_known() || local_usage.is_before(after)) return refund;
  if (after.most == 0) return 0;
  const std::int64_t subtracted = std::min(refund, cut_left);
  cut_left -= subtracted;
  return refund - subtracted;
}

// Removes the key under every period.
void UnsyncedCharges::forget(KeyMark mark) {
  const base::MutexLock lock(mutex_);
  enter_all();
  epoch_.fetch_add(1);
  book_.erase_if([&](const auto& one) { return one.key.mark == mark; });
  in_flight_.erase_if([&](const auto& one) { return one.key.mark == mark; });
  keys_.store(book_.size());
  in_flight_keys_.store(in_flight_.size());
}

std::uint64_t UnsyncedCharges::doubt(const KnownKey& key, const Limit& limit, std::int64_t cost) {
  const base::MutexLock lock(mutex_);
  send(state_of(key.mark, limit), cost, Micros::max());
  return epoch();
}

void UnsyncedCharges::send(const State& state, std::int64_t cost, Micros until) {
  const auto [place, is_new] = in_flight_.insert(state, {});
  InFlight& sent = *place;
  if (is_new) sent.epoch = epoch();
  sent.cost += cost;
  sent.until = std::max(sent.until, until);
  in_flight_keys_.store(in_flight_.size());
}

std::int64_t UnsyncedCharges::cost_of(const KnownKey& key, const Limit& limit, Micros now) {
  const base::MutexLock lock(mutex_);
  enter_lines_of(key.mark);
  const State state = state_of(key.mark, limit);
  std::int64_t cost = 0;
  if (const UnsyncedCharge* const known = book_.find(state); known != nullptr && known->until > now) cost = known->cost;
  if (const InFlight* const sent = in_flight_.find(state); sent != nullptr && sent->until > now) cost += sent->cost;
  return cost;
}

std::vector<UnsyncedCharge> UnsyncedCharges::take(std::size_t most) {
  std::vector<UnsyncedCharge> out;
  const base::MutexLock lock(mutex_);
  enter_all();
  while (book_.size() > 0 && out.size() < most) {
    auto& [state, charge] = book_.entries()[taken_++ % book_.size()];  // in rotation, so that none waits forever
    out.push_back(std::move(charge));
    out.back().epoch = epoch();
    send(state, out.back().cost, out.back().until);
    book_.erase(state);
  }
  keys_.store(book_.size());
  return out;
}

std::optional<UnsyncedCharge> UnsyncedCharges::take_one(const KnownKey& key, const Limit& limit, bool& is_elsewhere) {
  const base::MutexLock lock(mutex_);
  enter_lines_of(key.mark);
  const State state = state_of(key.mark, limit);
  if (in_flight_.find(state) != nullptr) {
    is_elsewhere = true;
    return {};
  }
  UnsyncedCharge* const known = book_.find(state);
  if (known == nullptr) return {};
  std::optional<UnsyncedCharge> out = std::move(*known);
  book_.erase(state);
  out->epoch = epoch();
  send(state, out->cost, out->until);
  keys_.store(book_.size());
  return out;
}

void UnsyncedCharges::settle(const UnsyncedCharge& charge, bool is_written) {
  const base::MutexLock lock(mutex_);
  const State state = state_of(charge.mark, charge.limit);
  InFlight* const sent = in_flight_.find(state);
  if (sent == nullptr || charge.epoch < sent->epoch) return;  // the key was reset
  sent->cost -= charge.cost;
  std::int64_t cut = charge.cut;
  const std::int64_t refunded = sent->take_refunds(charge, cut);
  if (sent->cost <= 0) in_flight_.erase(state);
  if (!is_written && charge.cost > refunded) {
    UnsyncedCharge& known =
        *book_.insert(state, {.name = charge.name, .mark = charge.mark, .limit = charge.limit}).first;
    if (charge.local_usage.is_known()) known.local_usage.take(charge.local_usage);
    if (charge.limit.capacity > known.limit.capacity) known.limit = charge.limit;
    known.cost += charge.cost - refunded;
    known.cut += cut;
    known.outside += charge.local_usage.is_known() ? charge.outside : charge.cost;
    known.until = std::max(known.until, charge.until);
    known.since_us = std::min(known.since_us, charge.since_us);
  }
  keys_.store(book_.size());
  in_flight_keys_.store(in_flight_.size());
}

std::uint64_t UnsyncedCharges::dropped_permits() {
  const base::MutexLock lock(mutex_);
  enter_all();
  return dropped_permits_;
}

std::size_t UnsyncedCharges::size() {
  const base::MutexLock lock(mutex_);
  enter_all();
  return book_.size();
}

}  // namespace weir::fleet
