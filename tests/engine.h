// An engine is anything that decides for one key: the oracle, the C++ arithmetic, the Lua script.
//
// The differential tests replay one trace on several engines and compare every field of every answer. They also branch,
// so an engine can be copied with its state. Not for several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir::test {

// All but concurrency: what a check charges.
inline constexpr Algorithm kChecked[] = {Algorithm::fixed_window, Algorithm::sliding_log,  Algorithm::sliding_window,
                                         Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::leaky_meter};

// Names the instances of a test with an algorithm as its parameter.
inline constexpr auto algorithm_name = [](const auto& test) { return std::string(weir::to_string(test.param)); };

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  virtual std::unique_ptr<Engine> clone() const = 0;

  // The limit applies from the next call on; what was used stays used.
  virtual void change(const Limit& limit) = 0;
  virtual Decision check(std::int64_t now, std::int64_t cost) = 0;
  // Refunds what was charged at `at`, under this limit. Returns what a peek returns afterwards.
  virtual Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) = 0;
  virtual Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) = 0;
  virtual bool release(std::int64_t now, std::string_view id) = 0;
};

// Charges each engine its cost, or none of them if one denies, as a store does with the keys of one request. Returns
// whether all allow; `decisions` are what such a store answers.
bool charge_all(std::span<std::unique_ptr<Engine>* const> engines, std::span<const std::int64_t> costs,
                std::int64_t now, std::vector<Decision>& decisions);

// `allow, 3 left of 5, retry 0, reset 12, delay 0`, times in microseconds.
std::string to_string(const Decision& decision);

std::unique_ptr<Engine> oracle_engine(const Limit& limit);
std::unique_ptr<Engine> cell_engine(const Limit& limit);

}  // namespace weir::test
