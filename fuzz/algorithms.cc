// Fuzzes the algorithms: an input is a limit and a sequence of requests, and the C++ code must decide as the oracle
// does.
//
// The fuzzer finds branches that random traces seldom reach. The clock also steps back, and limits change, as in
// tests/differential_test.cc.
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "algorithm/limit.h"
#include "fuzz.h"
#include "tests/engine.h"

namespace {

using namespace weir;

class Bytes {
 public:
  explicit Bytes(std::string_view input) : left_(input) {}
  bool empty() const { return left_.empty(); }
  std::uint64_t take(std::size_t count) {
    std::uint64_t value = 0;
    for (; count > 0 && !left_.empty(); --count) value = value << 8 | take_byte(left_);
    return value;
  }
  // Never negative. A byte below 0xf8 is the number itself; 0xf8 to 0xff mean that it is in the next one to eight
  // bytes.
  std::int64_t number() {
    const std::uint64_t first = take(1);
    return static_cast<std::int64_t>((first < 0xf8 ? first : take(first - 0xf7)) & INT64_MAX);
  }

 private:
  std::string_view left_;
};

Limit take_limit(Bytes& bytes, Algorithm algorithm) {
  const std::int64_t permits = bytes.number() & (kPermitsMax - 1);
  const std::int64_t period = 1 + (bytes.number() & ((std::int64_t{1} << 48) - 1));
  if (algorithm::is_bucket(algorithm)) {
    const std::int64_t capacity = 1 + (bytes.number() & ((std::int64_t{1} << 39) - 1));
    if (const auto limit = algorithm::make_bucket(algorithm, permits, period, capacity)) return *limit;
    return algorithm::make_bucket(algorithm, 3, 7, 5).value();
  }
  Limit limit{.algorithm = algorithm, .permits = permits, .period_us = period, .capacity = permits};
  if (algorithm == Algorithm::fixed_window) limit.phase_us = bytes.number() % period;
  if (algorithm == Algorithm::sliding_log) limit.events_max = 1 + (bytes.number() & 7);
  if (algorithm == Algorithm::concurrency) limit.permits = limit.capacity = permits & 0xff;
  return limit;
}

void differ(const Decision& expected, const Decision& got) {
  std::fprintf(stderr, "oracle: %s\nC++:    %s\n", test::to_string(expected).c_str(), test::to_string(got).c_str());
  assertion_failed("the C++ code decides as the oracle does", __FILE__, __LINE__);
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.size() > 512) return;
  Bytes bytes(input);
  const Algorithm algorithm = kAlgorithms[bytes.take(1) % std::size(kAlgorithms)];
  const bool has_ids = algorithm == Algorithm::concurrency;
  const Limit first = take_limit(bytes, algorithm);
  const auto oracle = test::oracle_engine(first), cell = test::cell_engine(first);
  std::int64_t now = bytes.number() & (kTimeEnd - 1);
  Decision last;
  while (!bytes.empty()) {
    const std::uint64_t op = bytes.take(1);
    std::int64_t step = (op & 3) == 0 ? 0 : bytes.number() & (kTimeEnd / 8 - 1);
    if ((op & 3) == 2 && last.retry_after != kNever) step = last.retry_after.count() - (step & 1);
    if ((op & 3) == 3) step = -step;
    now = std::min(std::max<std::int64_t>(0, now + step), kTimeEnd - 1);
    if ((op & 0xf0) == 0xf0) {
      const Limit next = take_limit(bytes, algorithm);
      oracle->change(next);
      cell->change(next);
    } else if (has_ids && (op & 0x40) != 0) {
      const std::string id(1, static_cast<char>('a' + (op >> 2 & 3)));
      const bool was_held = oracle->release(now, id);
      if (cell->release(now, id) != was_held) differ({.allowed = was_held}, {.allowed = !was_held});
    } else {
      const std::int64_t cost = (op & 0x10) != 0 && !has_ids ? -bytes.number() : bytes.number();
      const std::int64_t positive = std::max<std::int64_t>(0, cost);
      const std::string id(has_ids && positive > 0 ? 1 : 0,
                           static_cast<char>('a' + (op >> 2 & 3)));  // no id: a peek
      last = has_ids ? oracle->acquire(now, id, positive) : oracle->check(now, cost);
      const Decision got = has_ids ? cell->acquire(now, id, positive) : cell->check(now, cost);
      if (!(got == last)) differ(last, got);
    }
  }
}
