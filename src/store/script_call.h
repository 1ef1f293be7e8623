// A call of the script that decides inside Redis: charges to arguments, the reply's integers to a verdict.
//
// Pure values; who sends them is not known here. The layout stands at the head of script.lua. Tested by
// tests/differential_test.cc and tests/redis_script_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

struct ScriptCharge {
  Charge charge;
  std::string_view hold_id;  // concurrency only; there a cost of -1 releases
};

// ARGV. `now_us` chooses the calendar windows that are sent along, one to each side: the server's clock may differ by
// almost a window. A deadline of 0 is none.
std::vector<std::string> script_arguments(std::span<const ScriptCharge> charges, std::int64_t deadline_us,
                                          std::int64_t now_us);

struct ScriptAnswer {
  enum class Outcome : std::uint8_t { taken, denied, late };
  std::int64_t now_us = 0;  // of the server
  Outcome outcome = Outcome::denied;
  std::vector<Decision> decisions;  // none if it was late
};

Result<ScriptAnswer> read_script_answer(std::span<const std::int64_t> reply, std::span<const ScriptCharge> charges);

}  // namespace weir
