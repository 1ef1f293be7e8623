// Denials in the log: a few of each second, and how many were not told, whatever an attacker makes of it.
//
//   denials.note(now, answer, request);        // by the rules; `denials` is the door's
//   denials.note(now, key, decision);          // by a limit that the client brought along
//   denials.note(now, limit, key);             // by one of Envoy's files
//
// One bound for all loops. A denial that is not told costs two accesses to one word. Each is counted in one second
// exactly, so that the lines and what they call not_logged add up to all that were noted. Keys are personal: the log
// has a short hash, with a secret of this process, unless the operator wants them in clear. Any thread. Tested by
// denial_log_test.cc and tests/server/denials_log.sh.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "log.h"
#include "weir/answer.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/request.h"

namespace weir {

struct DenialLogOptions {
  std::uint32_t per_second = 10;  // 0: none
  bool in_clear = false;          // keys
};

struct DenialCounts {
  std::uint64_t logged = 0;
  std::uint64_t dropped = 0;
};

// What is told of one.
struct Denial {
  std::string_view protocol{};
  std::string_view request_id{};
  std::string_view rule{};  // empty: a limit that the client brought along
  std::string_view quota{};
  std::string_view key{};
  Micros retry_after{0};
  MadeBy made = MadeBy::here;
};

class DenialLog {
 public:
  DenialLog(const DenialLogOptions& options, Limiter& limiter);
  ~DenialLog();
  DenialLog(const DenialLog&) = delete;
  DenialLog& operator=(const DenialLog&) = delete;

  // Counts one; true if it is to be written.
  bool takes(Micros now) {
    if (options_.per_second == 0 || !is_logged(LogLevel::info)) return false;
    const std::uint64_t second = second_of(now);
    if (word_.load(std::memory_order_relaxed) >> kCountBits < second && begin_second(second)) return true;
    return (word_.fetch_add(1, std::memory_order_relaxed) & kCountMask) < options_.per_second;
  }
  void write(const Denial& denial);

  // If a second is over in which some were not told, tells how many.
  void tell_rest(Micros now);

  DenialCounts counts() const;

 private:
  static constexpr unsigned kCountBits = 32;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;
  static std::uint64_t second_of(Micros now) { return static_cast<std::uint64_t>(now.count()) / 1'000'000 + 1; }

  bool begin_second(std::uint64_t second);
  void close(std::uint64_t word);
  std::uint64_t beyond(std::uint64_t word) const;
  std::string name_of(std::string_view key) const;
  void watch();

  const DenialLogOptions options_;
  Limiter& limiter_;
  const std::string secret_;
  std::atomic<std::uint64_t> word_{0};    // a second, and how many were noted in it
  std::atomic<std::uint64_t> untold_{0};  // of seconds that are over
  std::atomic<std::uint64_t> logged_{0}, dropped_{0};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool has_begun_ = false;  // a second, after silence
  bool is_ending_ = false;
  std::thread watcher_;  // tells the rest when silence follows
};

// What a request came to, for whoever traces it.
struct DecidedRule {
  std::string rule{};  // empty: a limit that the client brought along, or none at all
  bool is_denied = false;
  bool is_decided = false;
};

// What a door of a loop notes by: all that it decides, though only denials are told. Without a log it does nothing.
struct DoorDenials {
  DenialLog* log = nullptr;
  Gate* gate = nullptr;
  std::string_view protocol{};
  std::string_view request_id{};   // of the request at hand
  DecidedRule* decided = nullptr;  // of the same, if it is traced

  void note(Micros now, const Answer& answer, const Request& request) const {
    if (decided != nullptr) *decided = {std::string(rule_of(answer)), !answer.allowed, true};
    if (!answer.allowed && log != nullptr && log->takes(now)) write(answer, request);
  }
  void note(Micros now, std::string_view key, const Decision& decision) const {
    if (decided != nullptr) *decided = {{}, !decision.allowed, true};
    if (!decision.allowed && log != nullptr && log->takes(now)) write(key, decision);
  }
  // By a limit that has a name, but is of no policy.
  void note(Micros now, const LimitAnswer& limit, std::string_view key) const {
    if (decided != nullptr) *decided = {std::string(limit.rule), !limit.decision.allowed, true};
    if (!limit.decision.allowed && log != nullptr && log->takes(now)) write(limit, key);
  }

 private:
  static std::string_view rule_of(const Answer& answer) {
    const LimitAnswer* const limit = answer.binding_limit();
    return answer.rule.empty() && limit != nullptr ? limit->rule : answer.rule;
  }
  void write(const Answer& answer, const Request& request) const;
  void write(std::string_view key, const Decision& decision) const;
  void write(const LimitAnswer& limit, std::string_view key) const;
};

}  // namespace weir
