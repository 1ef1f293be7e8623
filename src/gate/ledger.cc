// Gathering and entering. See ledger.h.
#include "gate/ledger.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "policy/subject.h"

namespace weir {
namespace {

constexpr std::uint32_t kNoSheetRule = UINT32_MAX;

std::uint64_t ledger_secret() {
  std::random_device random;
  const std::uint64_t high = random();
  return high << 32 | random();
}

std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class T>
std::uint64_t word_at(const char* from) {
  T word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// As mark_of(), but for short texts: the last bytes are read together with some before them, so that every reading is
// of a size that the compiler knows.
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

Ledger::Ledger(const SpendingOptions& options, bool hides_subjects)
    : options_(options),
      hides_subjects_(hides_subjects),
      secret_(ledger_secret()),
      stripes_(std::make_unique<std::array<Stripe, kStripes>>()) {}
Ledger::~Ledger() = default;

std::string Ledger::kept_id(std::string id) const { return hides_subjects_ ? hashed_subject(id) : std::move(id); }

// A number goes to another rule only after it was of none for long.
void Ledger::learn(std::uint32_t number, std::string_view rule) {
  if (!is_on()) return;
  {
    const std::lock_guard lock(books_);
    if (number < names_.size() && names_[number] == rule) return;
    if (number >= names_.size() || names_[number].empty()) {
      if (number >= names_.size()) names_.resize(number + 1);
      names_[number] = rule;
      return;
    }
  }
  for (Stripe& stripe : *stripes_) {
    const std::lock_guard lock(stripe.writing);
    enter(stripe);
  }
  const std::lock_guard lock(books_);
  names_[number] = rule;
  for (auto& [number_of_day, day] : days_) day.rules.clear();
}

void Ledger::add(std::span<const Line> lines, Micros now) noexcept {
  const std::int64_t day = now / kDay;
  Stripe& stripe = (*stripes_)[stripe_of_this_thread()];
  const std::lock_guard lock(stripe.writing);
  try {
    if (stripe.day != day) {
      enter(stripe);
      stripe.day = day;
    }
    for (const Line& line : lines) put(stripe, line);
  } catch (const std::exception&) {
    const std::lock_guard counting(books_);
    ++lost_;
  }
}

void Ledger::put(Stripe& stripe, const Line& line) {
  if (stripe.slots == nullptr) stripe.slots = std::make_unique<Slots>();
  if (line.subject.size() > kIdBytes) {
    const std::lock_guard lock(books_);
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

// With the stripe's lock. What cannot be entered for lack of memory is lost: nothing must be entered twice.
void Ledger::enter(Stripe& stripe) {
  if (stripe.used == 0) return;
  const std::lock_guard lock(books_);
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
    day.sheet->add(rule, hashed_subject(line.subject), line.sums);
  } else {
    day.sheet->add(rule, line.subject, line.sums);
  }
  ++day.version;
}

// The day before the newest stays open, for threads that have not entered it yet.
Ledger::Day& Ledger::open(std::int64_t number) {
  Day& day = days_[number];
  if (day.sheet != nullptr) return day;
  auto sheet = std::make_unique<Sheet>(number, options_.subjects, secret_);
  if (day.text != nullptr) sheet->take(accounts_of(day));
  day.sheet = std::move(sheet);
  day.text.reset();
  day.rules.clear();
  const std::int64_t newest = days_.rbegin()->first;
  if (number == newest) close_before(newest - 1);
  while (days_.size() > options_.days + 1 && days_.begin()->first != number) forget(days_.begin()->first);
  return day;
}

void Ledger::forget(std::int64_t number) {
  const auto day = days_.find(number);
  if (day->second.sheet != nullptr) evicted_before_ += day->second.sheet->evicted();
  days_.erase(day);
}

void Ledger::close_before(std::int64_t number) {
  for (auto& [day_number, day] : days_) {
    if (day_number >= number || day.sheet == nullptr) continue;
    day.text = std::make_shared<const std::string>(to_text(day.sheet->copy()));
    evicted_before_ += day.sheet->evicted();
    day.sheet.reset();
  }
}

DayAccounts Ledger::accounts_of(const Day& day) {
  if (day.sheet != nullptr) return day.sheet->copy();
  auto accounts = parse_accounts(*day.text);
  return accounts ? *std::move(accounts) : DayAccounts{};
}

void Ledger::enter_all(Micros now) {
  for (Stripe& stripe : *stripes_) {
    const std::lock_guard lock(stripe.writing);
    enter(stripe);
  }
  const std::int64_t today = now / kDay;
  const std::lock_guard lock(books_);
  close_before(today);
  const auto kept = static_cast<std::int64_t>(std::max<std::size_t>(options_.days, 1));
  while (!days_.empty() && days_.begin()->first <= today - kept) forget(days_.begin()->first);
}

std::vector<DayAccounts> Ledger::days(std::int64_t from, std::int64_t to) const {
  std::vector<DayAccounts> out;
  std::vector<std::shared_ptr<const std::string>> texts;
  {
    const std::lock_guard lock(books_);
    for (auto day = days_.lower_bound(from); day != days_.end() && day->first <= to; ++day) {
      if (day->second.text != nullptr) {
        texts.push_back(day->second.text);
      } else if (day->second.sheet != nullptr) {
        out.push_back(day->second.sheet->copy());
      }
    }
  }
  for (const auto& text : texts) {
    if (auto accounts = parse_accounts(*text)) out.push_back(*std::move(accounts));
  }
  return out;
}

Result<void> Ledger::take(std::string text, Micros now) {
  const auto accounts = parse_accounts(text);
  if (!accounts) return fail(accounts.error());
  const std::lock_guard lock(books_);
  if (days_.count(accounts->day) > 0) return fail(ErrorCode::invalid_argument, "its day is known already");
  if (accounts->day >= now / kDay) {
    open(accounts->day).sheet->take(*accounts);
  } else {
    days_[accounts->day].text = std::make_shared<const std::string>(std::move(text));
  }
  return {};
}

std::vector<SavedSpending> Ledger::unsaved(Micros now) {
  enter_all(now);
  struct Unsaved {
    SavedSpending day;
    DayAccounts accounts;
    std::shared_ptr<const std::string> text;
  };
  std::vector<Unsaved> found;
  {
    const std::lock_guard lock(books_);
    for (const auto& [number, day] : days_) {
      if (day.version == day.saved) continue;
      Unsaved& one = found.emplace_back(Unsaved{{number, day_text(number), day.version, {}}, {}, day.text});
      if (day.sheet != nullptr) one.accounts = day.sheet->copy();
    }
  }
  std::vector<SavedSpending> out;
  for (Unsaved& one : found) {
    one.day.text = one.text != nullptr ? *one.text : to_text(one.accounts);
    out.push_back(std::move(one.day));
  }
  return out;
}

void Ledger::saved(std::int64_t number, std::uint64_t version) {
  const std::lock_guard lock(books_);
  const auto day = days_.find(number);
  if (day != days_.end()) day->second.saved = version;
}

SpendingStats Ledger::stats() const {
  const std::lock_guard lock(books_);
  SpendingStats out{.places = options_.subjects, .days = days_.size(), .evicted = evicted_before_, .lost = lost_};
  for (const auto& [number, day] : days_) {
    if (day.sheet == nullptr) continue;
    out.evicted += day.sheet->evicted();
    out.accounts = day.sheet->size();
  }
  return out;
}

}  // namespace weir
