// Stores, reports and removes refused rows. See refusals.h.
#include "plans/refusals.h"

#include <algorithm>
#include <utility>

namespace weir::plans {
namespace {

constexpr std::size_t kRefusalsKept = 100;
constexpr std::size_t kToldAtOnce = 20;  // per period
constexpr Micros kTellingPeriod{10'000'000};

}  // namespace

void Refusals::refuse(std::string_view subject, std::string_view message, Micros now) {
  PlanEvent event{PlanEvent::Kind::refused_row, std::string(subject), std::string(message)};
  bool is_told = false;
  {
    const base::MutexLock lock(mutex_);
    ++total_;
    const auto before = std::ranges::find(last_, subject, &PlanEvent::subject);
    const bool is_new = before == last_.end() || before->message != message;
    if (before != last_.end()) last_.erase(before);
    last_.push_back(event);
    if (last_.size() > kRefusalsKept) last_.pop_front();
    if (!is_new) return;
    if (now - since_ >= kTellingPeriod && untold_ == 0) {
      since_ = now;
      told_ = 0;
    }
    is_told = told_ < kToldAtOnce;
    is_told ? ++told_ : ++untold_;
  }
  if (is_told && report_) report_(event);
}

void Refusals::accept(std::string_view subject) {
  const base::MutexLock lock(mutex_);
  const auto before = std::ranges::find(last_, subject, &PlanEvent::subject);
  if (before != last_.end()) last_.erase(before);
}

void Refusals::report_rest(Micros now) {
  std::uint64_t untold = 0;
  {
    const base::MutexLock lock(mutex_);
    if (untold_ == 0 || now - since_ < kTellingPeriod) return;
    untold = std::exchange(untold_, 0);
    since_ = now;
    told_ = 0;
  }
  if (!report_) return;
  report_({PlanEvent::Kind::refused_row, "",
           std::to_string(untold) + (untold == 1 ? " more row was" : " more rows were") + " refused; the last " +
               std::to_string(kRefusalsKept) + " are listed"});
}

std::vector<PlanEvent> Refusals::last() const {
  const base::MutexLock lock(mutex_);
  return {last_.begin(), last_.end()};
}

std::uint64_t Refusals::total() const {
  const base::MutexLock lock(mutex_);
  return total_;
}

}  // namespace weir::plans
