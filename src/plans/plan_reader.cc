// Decides what to read next, and handles replies. See plan_reader.h.
#include "plans/plan_reader.h"

#include <set>
#include <string_view>
#include <utility>

namespace weir::plans {
namespace {

constexpr std::size_t kAtOnce = 256;           // most subjects in one query
constexpr std::size_t kQuickToGrow = 16;       // fast replies to full queries
constexpr Micros kQuick{100'000};              // a tenth of the default time-out
constexpr std::size_t kSubjectToldBytes = 64;  // shown of a subject that is too long
constexpr std::size_t kPageRows = 1'000;       // takes some milliseconds
constexpr std::size_t kChangedMax = 10'000;
constexpr Micros kRestMax{250'000};

Result<CheckedRow> take_at_its_word(const PlanRow& row) {
  return CheckedRow{row.plan.value_or(""), row.limits.value_or("")};
}

template <class List>
std::vector<std::string> take_some(List& list, std::size_t most) {
  std::vector<std::string> some;
  for (; !list.empty() && some.size() < most; list.pop_back()) some.push_back(std::move(list.back()));
  return some;
}

}  // namespace

PlanReader::PlanReader(PlanSource& source, PlanCache& cache, Refusals& refusals, Bounds bounds)
    : source_(source),
      cache_(cache),
      refusals_(refusals),
      bounds_(bounds),
      check_(take_at_its_word),
      at_once_(kAtOnce),
      random_(std::random_device{}()) {}

void PlanReader::check_by(Check check, Micros now) {
  check_ = check ? std::move(check) : take_at_its_word;
  ++era_;
  cache_.each([&](const PlanCache::Seen& one) {
    if (one.is_pending) return;
    if (const auto row = row_of_text(one.subject, one.text)) take(*row, PlanCache::WhenFull::skip, now);
  });
}

void PlanReader::take(const PlanRow& row, PlanCache::WhenFull then, Micros now) {
  if (row.subject.size() > kPlanSubjectMax) {
    refusals_.refuse(row.subject.substr(0, kSubjectToldBytes) + "...",
                     "the subject has " + std::to_string(row.subject.size()) + " bytes; at most " +
                         std::to_string(kPlanSubjectMax) + " are allowed",
                     now);
    return;
  }
  const std::string text = row_text(row);
  if (cache_.is_same(row.subject, text, mark())) return;
  Result<CheckedRow> checked = CheckedRow{};
  if (!row.error.empty()) {
    checked = fail(ErrorCode::invalid_argument, row.error);
  } else if (!text.empty()) {
    checked = check_(row);
  }
  // Do this before the new plan becomes visible, so that no caller sees the plan together with its old refusal.
  if (checked) {
    refusals_.accept(row.subject);
  } else {
    refusals_.refuse(row.subject, checked.error().message, now);
  }
  KeptTerms terms;
  if (checked) terms = {std::move(checked->plan), std::move(checked->instead), checked->until};
  if (cache_.keep(row.subject, text, checked ? &terms : nullptr, mark(), then)) ++changes_;
}

void PlanReader::recall(const std::vector<RememberedRow>& rows, Micros now) {
  for (const RememberedRow& row : rows) {
    const auto known = row_of_text(row.subject, row.text);
    if (known && !row.text.empty()) take(*known, PlanCache::WhenFull::skip, now);
  }
}

Result<void> PlanReader::look_up(std::span<const std::string> subjects, PlanCache::WhenFull then, Micros now) {
  const auto begun = read_stopwatch();
  const Result<std::vector<PlanRow>> rows = source_.find(subjects);
  if (!rows) {
    if (subjects.size() > 1) at_once_ = subjects.size() / 2;
    quick_ = 0;
    return fail(rows.error());
  }
  const bool is_quick = read_stopwatch() - begun < kQuick;
  if (subjects.size() >= at_once_ && is_quick && ++quick_ % kQuickToGrow == 0) {
    at_once_ = std::min(2 * at_once_, kAtOnce);
  }
  lookups_ += subjects.size();
  std::set<std::string_view> found;
  for (const PlanRow& row : *rows) {
    found.insert(row.subject);
    take(row, then, now);
  }
  for (const std::string& subject : subjects) {
    if (!found.contains(subject)) take(PlanRow{.subject = subject}, then, now);
  }
  return {};
}

void PlanReader::read(std::vector<std::string> subjects) {
  if (changed_.size() + subjects.size() > kChangedMax) {
    changed_.clear();
    read_all();
    return;
  }
  for (std::string& subject : subjects) changed_.push_front(std::move(subject));
}

void PlanReader::start_over() {
  work_ = Work::none;
  changed_.clear();
  rest_until_ = Micros{0};
  is_again_ = true;
}

void PlanReader::read_all() { is_again_ = true; }

void PlanReader::begin(Micros now) {
  is_again_ = false;
  began_at_ = now;
  if (!has_pages_) {
    begin_subjects();
    return;
  }
  work_ = Work::pages;
  ++reading_;
  after_.clear();
  rows_ = 0;
}

void PlanReader::begin_subjects() {
  work_ = Work::subjects;
  std::vector<PlanCache::Seen> seen;
  cache_.each([&](PlanCache::Seen& one) { seen.push_back(std::move(one)); });
  std::ranges::sort(seen, {}, &PlanCache::Seen::asked);
  subjects_.clear();
  for (PlanCache::Seen& one : seen) {
    if (!one.is_pending) subjects_.push_back(std::move(one.subject));
  }
}

void PlanReader::finish(Micros now) {
  work_ = Work::none;
  rest_until_ = now + std::clamp(now - began_at_, Micros{0}, kRestMax);
}

Result<void> PlanReader::turn(Micros now) {
  if (!changed_.empty()) {
    if (Result<void> done = look_up(take_some(changed_, at_once_), PlanCache::WhenFull::skip, now); !done) return done;
  }
  if (work_ == Work::none && is_again_ && now >= rest_until_) begin(now);
  switch (work_) {
    case Work::pages:
      return read_page(now);
    case Work::subjects:
      return read_subjects(now);
    case Work::none:
      break;
  }
  if (refresh_at_ == Micros{0}) {
    plan_refresh(now);  // everything was just read
  } else if (now >= refresh_at_) {
    return refresh_some(now);
  }
  return {};
}

Result<void> PlanReader::read_page(Micros now) {
  const Result<std::vector<PlanRow>> page = source_.all(after_, kPageRows);
  if (!page && page.error().code != ErrorCode::not_found) return fail(page.error());
  if (page) {
    for (const PlanRow& row : *page) take(row, PlanCache::WhenFull::skip, now);
    rows_ += page->size();
    lookups_ += page->size();
  }
  if (!page || rows_ > bounds_.subjects_max) {
    // Read the known subjects one by one instead; no caller waits for it.
    was_read_ = true;
    has_pages_ = false;
    begin_subjects();
    return {};
  }
  if (page->size() == kPageRows) {
    after_ = page->back().subject;
    return {};
  }
  was_read_ = true;
  // A subject that had a row but was not on any page has lost it. Confirm that with one more lookup.
  work_ = Work::subjects;
  subjects_.clear();
  cache_.each([&](PlanCache::Seen& one) {
    if (!one.text.empty() && one.mark.reading != reading_) subjects_.push_back(std::move(one.subject));
  });
  if (subjects_.empty()) finish(now);
  return {};
}

Result<void> PlanReader::read_subjects(Micros now) {
  const std::vector<std::string> some = take_some(subjects_, at_once_);
  if (!some.empty()) {
    if (Result<void> done = look_up(some, PlanCache::WhenFull::skip, now); !done) return done;
  }
  if (subjects_.empty()) finish(now);
  return {};
}

// Schedules the next piece, so that every subject is read once per refresh interval.
void PlanReader::plan_refresh(Micros now) {
  const auto pieces = static_cast<std::int64_t>(cache_.size() / at_once_ + 1);
  const std::int64_t mean_us = std::max<std::int64_t>(bounds_.refresh.count() / pieces, 1'000);
  refresh_at_ = now + Micros{std::uniform_int_distribution<std::int64_t>(mean_us * 9 / 10, mean_us * 11 / 10)(random_)};
}

Result<void> PlanReader::refresh_some(Micros now) {
  plan_refresh(now);
  std::vector<PlanCache::Seen> seen;
  if (!cache_.next(refreshed_, at_once_, seen)) refreshed_ = {};
  std::vector<std::string> subjects;
  for (PlanCache::Seen& one : seen) {
    if (!one.is_pending) subjects.push_back(std::move(one.subject));
  }
  if (subjects.empty()) return {};
  return look_up(subjects, PlanCache::WhenFull::skip, now);
}

}  // namespace weir::plans
