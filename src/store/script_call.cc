// The layout of a call, in one place with the numbers that the script knows each algorithm by. See script_call.h.

#include "store/script_call.h"

#include <cstddef>

#include "algorithm/calendar.h"

namespace weir {
namespace {

constexpr std::size_t kFields = 5;  // of a decision: allowed, remaining, retry_after, reset_after, delay
constexpr std::int64_t kNeverOnTheWire = -1;

struct Terms {
  char kind;
  std::int64_t x, y, z;
};

Terms terms_of(const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::fixed_window:
      return {'f', limit.permits, limit.period_us, limit.calendar ? limit.calendar->tag() : limit.phase_us};
    case Algorithm::sliding_window:
      return {'w', limit.permits, limit.period_us, 0};
    case Algorithm::sliding_log:
      return {'l', limit.permits, limit.period_us, limit.events_max};
    case Algorithm::token_bucket:
      return {'t', limit.capacity, limit.rate, limit.weight};
    case Algorithm::leaky_meter:
      return {'m', limit.capacity, limit.rate, limit.weight};
    case Algorithm::leaky_bucket:
      return {'q', limit.capacity, limit.rate, limit.weight};
    case Algorithm::concurrency:
      break;
  }
  return {'c', limit.permits, limit.period_us, 0};
}

}  // namespace

std::vector<std::string> script_arguments(std::span<const ScriptCharge> charges, std::int64_t deadline_us,
                                          std::int64_t now_us) {
  std::vector<std::string> arguments{std::to_string(deadline_us)};
  for (const auto& [charge, hold_id] : charges) {
    const Terms terms = terms_of(*charge.limit);
    arguments.emplace_back(1, terms.kind);
    for (const std::int64_t number : {terms.x, terms.y, terms.z, charge.cost}) {
      arguments.push_back(std::to_string(number));
    }
    if (charge.limit->calendar) {
      const Calendar& calendar = *charge.limit->calendar;
      const Window window = calendar.window_at(now_us);
      const std::int64_t last =
          window.start_us > 0 ? calendar.window_at(window.start_us - 1).start_us : window.start_us;
      for (const std::int64_t number : {last, window.start_us, window.end_us, window.next_end_us}) {
        arguments.push_back(std::to_string(number));
      }
    }
    if (charge.limit->algorithm == Algorithm::concurrency) arguments.emplace_back(hold_id);
  }
  return arguments;
}

Result<ScriptAnswer> read_script_answer(std::span<const std::int64_t> reply, std::span<const ScriptCharge> charges) {
  if (reply.size() == 2 && reply[1] == -1) return ScriptAnswer{reply[0], ScriptAnswer::Outcome::late, {}};
  if (reply.size() != 2 + kFields * charges.size()) {
    return fail(ErrorCode::unavailable, "the script answered " + std::to_string(reply.size()) + " numbers for " +
                                            std::to_string(charges.size()) + " charges");
  }
  ScriptAnswer answer{reply[0], reply[1] == 1 ? ScriptAnswer::Outcome::taken : ScriptAnswer::Outcome::denied, {}};
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const auto field = reply.subspan(2 + kFields * i, kFields);
    answer.decisions.push_back({.allowed = field[0] == 1,
                                .limit = charges[i].charge.limit->capacity,
                                .remaining = field[1],
                                .retry_after = field[2] == kNeverOnTheWire ? kNever : Micros{field[2]},
                                .reset_after = Micros{field[3]},
                                .delay = Micros{field[4]}});
  }
  return answer;
}

}  // namespace weir
