// Gathers lines per thread and enters them into the day's accounts. See ledger.h. Any thread.
#include "usage/ledger.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "policy/subject.h"
#include "usage/space_saving.h"

namespace weir::usage {
namespace {

constexpr std::uint32_t kNoSheetRule = UINT32_MAX;
constexpr Micros kLate{60'000'000};  // how long after its end a day stays open for late additions

template <class T>
std::uint64_t word_at(const char* from) {
  T word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// Like mark_of(), but for short texts. It reads the last bytes together with some before them, so that every read has
// a size known at compile time.
std::uint64_t quick_mark(std::string_view text, std::uint64_t secret) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
  const char* const end = text.data() + text.size();
  std::uint64_t mark = secret ^ (text.size() * kOdd);
  if (text.size() >= 8) {
    for (const char* at = text.data(); end - at > 8; at += 8)
      mark = folded(mark ^ word_at<std::uint64_t>(at), kOdd) + secret;
    return folded(folded(mark ^ word_at<std::uint64_t>(end - 8), kOdd) + secret, kOdd ^ secret);
  }
  std::uint64_t word = 0;
  if (text.size() >= 4) {
    word = word_at<std::uint32_t>(text.data()) << 32 | word_at<std::uint32_t>(end - 4);
  } else if (!text.empty()) {
    word = word_at<std::uint8_t>(text.data()) << 16 | word_at<std::uint8_t>(text.data() + text.size() / 2) << 8 |
           word_at<std::uint8_t>(end - 1);
  }
  return folded(folded(mark ^ word, kOdd) + secret, kOdd ^ secret);
}

}  // namespace

Ledger::Ledger(const UsageOptions& options, bool hides_subjects)
    : options_{.subjects = std::min(options.subjects, kUsageSubjectsMax), .days = options.days},
      hides_subjects_(hides_subjects),
      secret_(random_secret()),
      stripes_(std::make_unique<std::array<Stripe, base::kStripes>>()) {}
Ledger::~Ledger() = default;

std::string Ledger::kept_id(std::string id) const {
  return hides_subjects_ ? policy::hashed_subject(id) : std::move(id);
}

// A subject may be present by its name and by its hash; its usage is the sum of both.
bool Ledger::hide(DayAccounts& accounts) const {
  if (!hides_subjects_) return false;
  bool has_changed = false;
  for (RuleAccounts& rule : accounts.rules) {
    std::unordered_map<std::string_view, std::size_t> places;
    std::vector<Account> hidden;
    hidden.reserve(rule.accounts.size());  // so that names in it stay where they are
    for (Account& one : rule.accounts) {
      std::string id = policy::hashed_subject(one.subject);
      has_changed = has_changed || id != one.subject;
      if (const auto place = places.find(id); place != places.end()) {
        hidden[place->second].sums.add(one.sums);
        hidden[place->second].errors.add(one.errors);
        continue;
      }
      hidden.push_back({std::move(id), one.sums, one.errors});
      places.emplace(hidden.back().subject, hidden.size() - 1);
    }
    rule.accounts = std::move(hidden);
  }
  return has_changed;
}

// A number is reused for another rule only after it has been unused for long.
void Ledger::learn(std::uint32_t number, std::string_view rule) {
  if (!is_on()) return;
  {
    const base::MutexLock lock(books_);
    if (number >= names_.size()) names_.resize(number + 1);
    if (names_[number] == rule) return;
    if (names_[number].empty()) {
      names_[number] = rule;
      return;
    }
  }
  for (Stripe& stripe : *stripes_) {
    const TurnLock lock(stripe.writing);
    enter(stripe);
  }
  const base::MutexLock lock(books_);
  names_[number] = rule;
  for (auto& [number_of_day, day] : days_) day.rules.clear();
}

void Ledger::add(std::span<const Line> lines, Micros now) noexcept {
  const std::int64_t day = now / kDay;
  try {
    Stripe& stripe = (*stripes_)[base::stripe_of_this_thread()];
    const TurnLock lock(stripe.writing);
    if (stripe.day != day) {
      enter(stripe);
      stripe.day = day;
    }
    for (const Line& line : lines) put(stripe, line);
  } catch (const std::exception&) {
    const base::MutexLock counting(books_);
    ++lost_;
  }
  if (close_before_.load(std::memory_order_relaxed) == 0) return;
  try {
    if (const std::int64_t number = close_before_.exchange(0); number != 0) close_before(number);
  } catch (const std::exception&) {  // out of memory: it stays open until the next call
  }
}

void Ledger::put(Stripe& stripe, const Line& line) {
  if (stripe.slots == nullptr) stripe.slots = std::make_unique<Slots>();
  if (line.subject.size() > kIdBytes) {
    const base::MutexLock lock(books_);
    return enter_line(open(stripe.day), line);
  }
  Slots& slots = *stripe.slots;
  const std::uint64_t mark = quick_mark(line.subject, secret_ + line.rule) | 1;
  std::size_t at = (mark >> 32) % kSlots;
  for (; slots.slots[at].mark != 0; at = (at + 1) % kSlots) {
    Slot& slot = slots.slots[at];
    if (slot.mark != mark || slot.rule != line.rule) continue;
    if (std::string_view(slot.id.data(), slot.size) != line.subject) continue;
    return slot.sums.add(line.sums);
  }
  if (stripe.used == kUsedMax) {
    enter(stripe);
    return put(stripe, line);
  }
  Slot& slot = slots.slots[at];
  slot.mark = mark;
  slots.used[stripe.used++] = static_cast<std::uint16_t>(at);
  slot.rule = line.rule;
  slot.size = static_cast<std::uint8_t>(line.subject.size());
  if (!line.subject.empty()) std::memcpy(slot.id.data(), line.subject.data(), line.subject.size());
  slot.sums = line.sums;
}

// What cannot be entered for lack of memory is lost, because nothing may be entered twice.
void Ledger::enter(Stripe& stripe) {
  if (stripe.used == 0) return;
  const base::MutexLock lock(books_);
  Slots& slots = *stripe.slots;
  std::span<const std::uint16_t> used = std::span(slots.used).first(std::exchange(stripe.used, 0));
  for (const std::uint16_t at : used) slots.slots[at].mark = 0;
  while (!used.empty()) {
    const std::size_t some = std::min<std::size_t>(used.size(), 32);
    try {
      enter_slots(open(stripe.day), slots, used.first(some));
    } catch (const std::exception&) {
      lost_ += some;
    }
    used = used.subspan(some);
  }
}

void Ledger::enter_slots(Day& day, const Slots& slots, std::span<const std::uint16_t> used) {
  const auto id = [&](std::size_t i) -> std::string_view {
    return {slots.slots[used[i]].id.data(), slots.slots[used[i]].size};
  };
  if (hides_subjects_) {
    for (std::size_t i = 0; i < used.size(); ++i) {
      enter_line(day, {slots.slots[used[i]].rule, id(i), slots.slots[used[i]].sums});
    }
    return;
  }
  std::array<std::uint64_t, 32> marks;
  std::array<std::uint32_t, 32> rules;
  for (std::size_t i = 0; i < used.size(); ++i) {
    rules[i] = sheet_rule(day, slots.slots[used[i]].rule);
    marks[i] = day.sheet->mark_of_account(rules[i], id(i));
    day.sheet->ask_for(marks[i]);
  }
  for (std::size_t i = 0; i < used.size(); ++i) day.sheet->ask_further(marks[i]);
  ++day.version;
  for (std::size_t i = 0; i < used.size(); ++i) {
    day.sheet->add(rules[i], id(i), marks[i], slots.slots[used[i]].sums);
  }
}

std::uint32_t Ledger::sheet_rule(Day& day, std::uint32_t rule) const {
  if (day.rules.size() <= rule) day.rules.resize(rule + 1, kNoSheetRule);
  std::uint32_t& of_sheet = day.rules[rule];
  if (of_sheet == kNoSheetRule) of_sheet = day.sheet->rule_of(rule < names_.size() ? names_[rule] : "");
  return of_sheet;
}

void Ledger::enter_line(Day& day, const Line& line) {
  const std::uint32_t rule = sheet_rule(day, line.rule);
  if (hides_subjects_) {
    day.sheet->add(rule, policy::hashed_subject(line.subject), line.sums);
  } else {
    day.sheet->add(rule, line.subject, line.sums);
  }
  ++day.version;
}

// The day before the newest stays open, for threads that have not entered their lines yet. enter_all() closes earlier
// days. If nothing calls that, the next thread that leaves the lock does.
Ledger::Day& Ledger::open(std::int64_t number) {
  Day& day = days_[number];
  if (day.sheet != nullptr) return day;
  std::unique_ptr<Sheet> sheet;
  if (day.closing != nullptr) {
    sheet = std::make_unique<Sheet>(*day.closing);
    evicted_before_ -= sheet->evicted();
  } else {
    sheet = std::make_unique<Sheet>(number, options_.subjects, secret_);
    if (const auto kept = day.text != nullptr ? parse_accounts(*day.text) : DayAccounts{}) sheet->take(*kept);
  }
  day.sheet = std::move(sheet);
  day.closing.reset();
  day.text.reset();
  day.rules.clear();
  const std::int64_t newest = days_.rbegin()->first;
  const auto is_open = [&](const auto& one) { return one.first < newest - 1 && one.second.text == nullptr; };
  if (number == newest && std::ranges::any_of(days_, is_open)) close_before_ = newest - 1;
  while (days_.size() > options_.days + 1 && days_.begin()->first != number) forget(days_.begin()->first);
  return day;
}

void Ledger::forget(std::int64_t number) {
  const auto day = days_.find(number);
  if (day->second.sheet != nullptr) evicted_before_ += day->second.sheet->evicted();
  days_.erase(day);
}

// The time to print a day grows with its accounts, and serving threads wait for the lock. So the text is made without
// the lock. If a thread adds to the day meanwhile, it opens a copy, and the text is discarded.
void Ledger::close_before(std::int64_t number) {
  std::vector<std::pair<std::int64_t, std::shared_ptr<const Sheet>>> closing;
  {
    const base::MutexLock lock(books_);
    for (auto& [day_number, day] : days_) {
      if (day_number >= number || day.text != nullptr) continue;
      if (day.sheet != nullptr) {
        day.closing = std::move(day.sheet);
        evicted_before_ += day.closing->evicted();
      }
      if (day.closing != nullptr) closing.emplace_back(day_number, day.closing);
    }
  }
  for (const auto& [day_number, sheet] : closing) {
    auto text = std::make_shared<const std::string>(to_text(sheet->copy()));
    const base::MutexLock lock(books_);
    const auto day = days_.find(day_number);
    if (day == days_.end() || day->second.closing != sheet) continue;
    day->second.text = std::move(text);
    day->second.closing.reset();
  }
}

void Ledger::enter_all(Micros now) {
  for (Stripe& stripe : *stripes_) {
    const TurnLock lock(stripe.writing);
    enter(stripe);
  }
  close_before((now - kLate) / kDay);
  const std::int64_t today = now / kDay;
  const base::MutexLock lock(books_);
  const auto kept = static_cast<std::int64_t>(std::max<std::size_t>(options_.days, 1));
  while (!days_.empty() && days_.begin()->first <= today - kept) forget(days_.begin()->first);
}

std::vector<DayAccounts> Ledger::days(std::int64_t from, std::int64_t to) const {
  std::vector<DayAccounts> out;
  std::vector<std::shared_ptr<const std::string>> texts;
  std::vector<std::shared_ptr<const Sheet>> closing;
  {
    const base::MutexLock lock(books_);
    for (auto day = days_.lower_bound(from); day != days_.end() && day->first <= to; ++day) {
      if (day->second.text != nullptr) {
        texts.push_back(day->second.text);
      } else if (day->second.sheet != nullptr) {
        out.push_back(day->second.sheet->copy());
      } else if (day->second.closing != nullptr) {
        closing.push_back(day->second.closing);
      }
    }
  }
  for (const auto& sheet : closing) out.push_back(sheet->copy());
  for (const auto& text : texts) {
    if (auto accounts = parse_accounts(*text)) out.push_back(*std::move(accounts));
  }
  return out;
}

Result<void> Ledger::take(std::string text, Micros now) {
  auto accounts = parse_accounts(text);
  if (!accounts) return fail(std::move(accounts.error()));
  const bool was_in_clear = hide(*accounts);
  if (was_in_clear) text = to_text(*accounts);
  const base::MutexLock lock(books_);
  if (days_.count(accounts->day) > 0) return fail(ErrorCode::invalid_argument, "its day is already loaded");
  if (accounts->day >= now / kDay) {
    open(accounts->day).sheet->take(*accounts);
  } else {
    days_[accounts->day].text = std::make_shared<const std::string>(std::move(text));
  }
  if (was_in_clear) ++days_[accounts->day].version;  // so that saving again removes the plain subjects from its file
  return {};
}

std::vector<SavedUsage> Ledger::unsaved(Micros now) {
  enter_all(now);
  struct Unsaved {
    SavedUsage day;
    DayAccounts accounts;
    std::shared_ptr<const Sheet> closing;
    std::shared_ptr<const std::string> text;
  };
  std::vector<Unsaved> found;
  {
    const base::MutexLock lock(books_);
    for (const auto& [number, day] : days_) {
      if (day.version == day.saved) continue;
      Unsaved& one = found.emplace_back(Unsaved{{number, {}, day.version, {}}, {}, day.closing, day.text});
      if (day.sheet != nullptr) one.accounts = day.sheet->copy();
    }
  }
  std::vector<SavedUsage> out;
  for (Unsaved& one : found) {
    if (one.closing != nullptr) one.accounts = one.closing->copy();
    one.day.date = day_text(one.day.day);
    one.day.text = one.text != nullptr ? *one.text : to_text(one.accounts);
    out.push_back(std::move(one.day));
  }
  return out;
}

void Ledger::saved(std::int64_t number, std::uint64_t version) {
  const base::MutexLock lock(books_);
  const auto day = days_.find(number);
  if (day != days_.end()) day->second.saved = version;
}

UsageStats Ledger::stats() const {
  const base::MutexLock lock(books_);
  UsageStats out{.places = options_.subjects, .days = days_.size(), .evicted = evicted_before_, .lost = lost_};
  for (const auto& [number, day] : days_) {
    if (day.sheet == nullptr) continue;
    out.evicted += day.sheet->evicted();
    out.accounts = day.sheet->size();
  }
  return out;
}

}  // namespace weir::usage
