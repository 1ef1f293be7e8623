// Counts and logs denials; a thread logs the rest when no more follow. See denial_log.h.
#include "server/observe/denial_log.h"

#include <chrono>
#include <vector>

#include "base/random_id.h"
#include "base/sha256.h"
#include "protocol/problem.h"

namespace weir::server::observe {
namespace {

constexpr std::chrono::seconds kSilence{1};
constexpr std::size_t kNameBytes = 6;
constexpr std::string_view kOwnLimit = "inline";  // the limit has no rule: the client sent it

std::string seconds_text(Micros wait) {
  std::string text;
  protocol::append_json_seconds(text, wait);
  return text == "null" ? "never" : text;
}

}  // namespace

DenialLog::DenialLog(const DenialLogOptions& options, Limiter& limiter)
    : options_(options), limiter_(limiter), secret_(base::random_id()) {
  if (options_.per_second > 0) watcher_ = std::thread([this] { watch(); });
}

DenialLog::~DenialLog() {
  {
    const base::MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }
  if (watcher_.joinable()) watcher_.join();
  log_rest(limiter_.now() + Micros{1'000'000});
}

std::uint64_t DenialLog::beyond(std::uint64_t word) const {
  const std::uint64_t noted = word & kCountMask;
  return noted > options_.per_second ? noted - options_.per_second : 0;
}

void DenialLog::close(std::uint64_t word) {
  const std::uint64_t more = beyond(word);
  unlogged_ += more;
  dropped_ += more;
}

// False if another thread has begun this second or a later one.
bool DenialLog::begin_second(std::uint64_t second) {
  std::uint64_t before = word_.load();
  do {
    if (before >> kCountBits >= second) return false;
  } while (!word_.compare_exchange_weak(before, second << kCountBits | 1));
  close(before);
  const base::MutexLock lock(mutex_);
  has_begun_ = true;
  changed_.notify_one();
  return true;
}

void DenialLog::log_rest(Micros now) {
  std::uint64_t before = word_.load();
  const std::uint64_t second = second_of(now);
  if (before >> kCountBits < second && beyond(before) > 0 &&
      word_.compare_exchange_strong(before, second << kCountBits)) {
    close(before);
    const base::MutexLock lock(mutex_);
    has_begun_ = true;  // word_ now has this second, so begin_second() will not set this for its first denial
    changed_.notify_one();
  }
  const std::uint64_t unlogged = before >> kCountBits < second ? unlogged_.exchange(0) : 0;
  if (unlogged == 0) return;
  log::log(log::LogLevel::info, "denials not logged", {{"not_logged", std::to_string(unlogged)}});
}

// If no denial follows, no line reports the unlogged ones. So log them a second after a second's first denial.
void DenialLog::watch() {
  base::MutexLock lock(mutex_);
  while (!is_ending_) {
    while (!has_begun_ && !is_ending_) changed_.wait(lock);
    has_begun_ = false;
    changed_.wait_for(lock, kSilence, [&]() REQUIRES(mutex_) { return is_ending_; });
    if (has_begun_) continue;  // a later second began, and its line reported them
    lock.unlock();
    log_rest(limiter_.now());
    lock.lock();
  }
}

DenialCounts DenialLog::counts() const { return {logged_.load(), dropped_.load() + beyond(word_.load())}; }

void DenialLog::write(const Denial& denial) {
  ++logged_;
  const std::string wait = seconds_text(denial.retry_after);
  std::string key(denial.key);
  if (!options_.in_clear && !key.empty()) {
    const auto hash = base::sha256(secret_ + key);
    key = base::hex(std::span(hash).first(kNameBytes));
  }
  const std::uint64_t unlogged = unlogged_.exchange(0);
  const std::string number = std::to_string(unlogged);
  std::vector<log::LogField> fields = {{"protocol", denial.protocol},
                                       {"rule", denial.rule.empty() ? kOwnLimit : denial.rule}};
  if (!denial.quota.empty()) fields.push_back({"limit", denial.quota});
  fields.push_back({"retry_after", wait});
  if (denial.decided_by != DecidedBy::here && denial.decided_by != DecidedBy::strict)
    fields.push_back({"decided_by", to_string(denial.decided_by)});
  if (!key.empty()) fields.push_back({options_.in_clear ? "key" : "key_hash", key});
  if (!denial.request_id.empty()) fields.push_back({"request_id", denial.request_id});
  if (unlogged > 0) fields.push_back({"not_logged", number});
  log::log(log::LogLevel::info, "denied", fields);
}

// An answer does not contain its key. For the few denials that are logged it is computed again.
void ListenerDenials::write(const Answer& answer, const Request& request) const {
  const std::string key = gate == nullptr ? std::string() : gate->key_of(answer, request);
  const LimitAnswer* const limit = answer.binding_limit();
  log->write({protocol, request_id, answer.rule, limit == nullptr ? std::string_view{} : limit->quota, key,
              answer.retry_after, limit == nullptr ? DecidedBy::here : limit->decision.decided_by});
}

void ListenerDenials::write(std::string_view rule, std::string_view quota, std::string_view key,
                            const Decision& decision) const {
  log->write({protocol, request_id, rule, quota, key, decision.retry_after, decision.decided_by});
}

}  // namespace weir::server::observe
