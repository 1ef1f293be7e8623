// Logs denials: at most a few per second, and how many were left out, so that an attacker cannot flood the log.
//
//   denials.note(now, answer, request);        // by the rules; `denials` is the listener's
//   denials.note(now, key, decision);          // by a limit that the client sent
//   denials.note(now, limit, key);             // by one of Envoy's files
//
// All loops share one bound. A denial that is not logged costs two accesses to one word. Each denial counts in
// exactly one second, so the lines plus their `not_logged` counts add up to all denials. Keys are personal data: the
// log shows a short hash, with a secret of this process, unless the operator wants them in clear. Any thread. Tested
// by denial_log_test.cc and tests/server/denials_log.sh.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "log/log.h"
#include "weir/answer.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/request.h"

namespace weir::server::observe {

struct DenialLogOptions {
  std::uint32_t per_second = 10;  // 0: none are logged
  bool in_clear = false;          // log keys unhashed
};

struct DenialCounts {
  std::uint64_t logged = 0;
  std::uint64_t dropped = 0;
};

// What the log says about one denial.
struct Denial {
  std::string_view protocol{};
  std::string_view request_id{};
  std::string_view rule{};  // empty: a limit that the client sent
  std::string_view quota{};
  std::string_view key{};
  Micros retry_after{0};
  DecidedBy decided_by = DecidedBy::here;
};

class DenialLog {
 public:
  DenialLog(const DenialLogOptions& options, Limiter& limiter);
  ~DenialLog();
  DenialLog(const DenialLog&) = delete;
  DenialLog& operator=(const DenialLog&) = delete;

  // Counts one denial; true if it is to be logged.
  bool takes(Micros now) {
    if (options_.per_second == 0 || !log::is_logged(log::LogLevel::info)) return false;
    const std::uint64_t second = second_of(now);
    if (word_.load(std::memory_order_relaxed) >> kCountBits < second && begin_second(second)) return true;
    return (word_.fetch_add(1, std::memory_order_relaxed) & kCountMask) < options_.per_second;
  }
  void write(const Denial& denial);

  // If a second with unlogged denials is over, logs how many there were.
  void log_rest(Micros now);

  DenialCounts counts() const;

 private:
  static constexpr unsigned kCountBits = 32;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;
  static std::uint64_t second_of(Micros now) { return static_cast<std::uint64_t>(now.count()) / 1'000'000 + 1; }

  bool begin_second(std::uint64_t second);
  void close(std::uint64_t word);
  std::uint64_t beyond(std::uint64_t word) const;
  void watch();

  const DenialLogOptions options_;
  Limiter& limiter_;
  const std::string secret_;
  std::atomic<std::uint64_t> word_{0};      // a second, and the number of denials in it
  std::atomic<std::uint64_t> unlogged_{0};  // unlogged denials of past seconds
  std::atomic<std::uint64_t> logged_{0}, dropped_{0};
  base::Mutex mutex_;
  std::condition_variable changed_;
  bool has_begun_ GUARDED_BY(mutex_) = false;  // whether a second has begun since the watcher last looked
  bool is_ending_ GUARDED_BY(mutex_) = false;
  std::thread watcher_;  // logs the rest when no more denials follow
};

// The outcome of a request, for its trace.
struct DecidedRule {
  std::string rule{};  // empty: a limit that the client sent, or no limit
  bool is_denied = false;
  bool is_decided = false;
};

// How one listener of a loop records its decisions. It accepts all of them, but logs only denials. Without a log it
// does nothing.
struct ListenerDenials {
  DenialLog* log = nullptr;
  Gate* gate = nullptr;
  std::string_view protocol{};
  std::string_view request_id{};   // of the current request
  DecidedRule* decided = nullptr;  // of the current request, if it is traced

  void note(Micros now, const Answer& answer, const Request& request) const {
    if (decided != nullptr) *decided = {std::string(rule_of(answer)), !answer.allowed, true};
    if (!answer.allowed && log != nullptr && log->takes(now)) write(answer, request);
  }
  void note(Micros now, std::string_view key, const Decision& decision) const {
    if (decided != nullptr) *decided = {{}, !decision.allowed, true};
    if (!decision.allowed && log != nullptr && log->takes(now)) write({}, {}, key, decision);
  }
  // By a limit that has a name but belongs to no policy.
  void note(Micros now, const LimitAnswer& limit, std::string_view key) const {
    if (decided != nullptr) *decided = {std::string(limit.rule), !limit.decision.allowed, true};
    if (!limit.decision.allowed && log != nullptr && log->takes(now)) {
      write(limit.rule, limit.quota, key, limit.decision);
    }
  }

 private:
  static std::string_view rule_of(const Answer& answer) {
    const LimitAnswer* const limit = answer.binding_limit();
    return answer.rule.empty() && limit != nullptr ? limit->rule : answer.rule;
  }
  void write(const Answer& answer, const Request& request) const;
  void write(std::string_view rule, std::string_view quota, std::string_view key, const Decision& decision) const;
};

}  // namespace weir::server::observe
