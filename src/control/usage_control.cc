// Loads and writes usage, and reports it. See usage_control.h.
#include "control/usage_control.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "log/log.h"
#include "policy/dimension.h"

namespace weir::control {
namespace {

constexpr Micros kDayLong{86'400'000'000};

}  // namespace

UsageControl::UsageControl(Limiter& limiter, Gate& gate, UsageControlOptions options)
    : limiter_(limiter), gate_(gate), options_(std::move(options)) {
  if (options_.folder.empty() || gate_.usage_stats().places == 0) return;
  if (const auto opened = files_.open(options_.folder); !opened) {
    log::log(log::LogLevel::error, "cannot open usage files, keeping usage in memory",
             {{"reason", opened.error().message}});
    return;
  }
  has_files_ = true;
  take_own();
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

UsageControl::~UsageControl() {
  if (!has_files_) return;
  thread_.request_stop();
  thread_.join();
  write();
}

void UsageControl::take_own() {
  const auto files = files_.list();
  if (!files)
    return log::log(log::LogLevel::error, "cannot list usage files, starting without saved usage",
                    {{"reason", files.error().message}});
  for (const usage::UsageFiles::File& file : *files) {
    if (file.seat == files_.seat()) take(file);
  }
}

void UsageControl::take(const usage::UsageFiles::File& file) {
  auto text = usage::UsageFiles::read(file);
  const auto wrong = text ? refuse_usage(*text) : std::nullopt;
  if (wrong && wrong->code != ErrorCode::out_of_range) {
    const auto aside = usage::UsageFiles::set_aside(file);
    const base::MutexLock lock(told_);
    ++status_.set_aside;
    return log::log(
        log::LogLevel::error, "usage file damaged, starting its day from zero",
        {{"file", file.path}, {"reason", wrong->message}, {"kept", aside ? *aside : aside.error().message}});
  }
  const auto taken = text.and_then([&](std::string whole) { return gate_.load_usage(std::move(whole)); });
  if (taken) return;
  dates_left_.push_back(file.date);
  log::log(log::LogLevel::error, "cannot use usage file, leaving it unchanged and keeping its day in memory",
           {{"file", file.path}, {"reason", taken.error().message}});
}

void UsageControl::work(const std::stop_token& stop) {
  base::Mutex nothing;
  while (!stop.stop_requested()) {
    base::MutexLock lock(nothing);
    waiting_.wait_for(lock, stop, options_.every, [] { return false; });
    if (!stop.stop_requested()) write();
  }
}

void UsageControl::write() {
  const Micros now = limiter_.now();
  std::string error;
  auto unsaved = gate_.unsaved_usage();
  if (!unsaved) {
    error = unsaved.error().message;
    unsaved = std::vector<SavedUsage>{};
  }
  for (const SavedUsage& day : *unsaved) {
    const bool is_left = std::ranges::find(dates_left_, day.date) != dates_left_.end();
    if (const auto written = is_left ? Result<void>{} : files_.write(day.date, day.text)) {
      gate_.usage_saved(day.day, day.version);
    } else {
      error = written.error().message;
    }
  }
  const Micros oldest = now - kDayLong * (static_cast<std::int64_t>(options_.days) - 1);
  files_.forget_before(policy::time_text(std::max(oldest, Micros{0})).substr(0, 10));
  const base::MutexLock lock(told_);
  if (error.empty()) {
    status_.written_at = now;
    if (!error_.empty()) log::log(log::LogLevel::info, "usage files are written again");
  } else {
    ++status_.failures;
    if (error != error_)
      log::log(log::LogLevel::error, "cannot write usage file, keeping usage in memory", {{"reason", error}});
  }
  error_ = error;
}

// Leaves out files that cannot be read, and logs it: they may be another version's.
std::vector<std::string> UsageControl::texts_of_others() const {
  std::vector<std::string> out;
  const auto files = has_files_ ? files_.list() : std::vector<usage::UsageFiles::File>{};
  if (!files) {
    log::log(log::LogLevel::warn, "cannot list usage files, reporting only this process",
             {{"reason", files.error().message}});
    return out;
  }
  for (const usage::UsageFiles::File& file : *files) {
    if (file.seat == files_.seat()) continue;
    auto text = usage::UsageFiles::read(file);
    std::string error = text ? std::string() : text.error().message;
    if (text) {
      if (auto wrong = refuse_usage(*text)) error = wrong->message;
    }
    if (error.empty()) {
      out.push_back(*std::move(text));
    } else {
      log::log(log::LogLevel::warn, "usage file left out of the report", {{"file", file.path}, {"reason", error}});
    }
  }
  return out;
}

Result<UsageReport> UsageControl::report(const UsageQuery& query) { return gate_.usage(query, texts_of_others()); }

UsageFileStatus UsageControl::status() const {
  const base::MutexLock lock(told_);
  return status_;
}

}  // namespace weir::control
