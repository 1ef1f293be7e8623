// Fuzzes the arithmetic: bytes are a limit and a sequence of requests, and the C++ must answer as the oracle does.
//
// The fuzzer looks for paths where random traces look for sizes; time runs both ways and limits change, as in
// tests/differential_test.cc.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "algorithm/limit.h"
#include "tests/engine.h"

namespace {

using namespace weir;

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool empty() const { return at_ == end_; }
  std::uint64_t take(std::size_t count) {
    std::uint64_t value = 0;
    for (; count > 0 && at_ != end_; --count) value = value << 8 | *at_++;
    return value;
  }
  // Never negative. Small numbers take one byte; 0xf8 and above announce as many more.
  std::int64_t number() {
    const std::uint64_t first = take(1);
    return static_cast<std::int64_t>((first < 0xf8 ? first : take(first - 0xf7)) & INT64_MAX);
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

Limit take_limit(Bytes& bytes, Algorithm algorithm) {
  const std::int64_t permits = bytes.number() & (kPermitsMax - 1);
  const std::int64_t period = 1 + (bytes.number() & ((std::int64_t{1} << 48) - 1));
  if (is_bucket(algorithm)) {
    const std::int64_t capacity = 1 + (bytes.number() & ((std::int64_t{1} << 39) - 1));
    if (const auto limit = make_bucket(algorithm, permits, period, capacity)) return *limit;
    return make_bucket(algorithm, 3, 7, 5).value();
  }
  Limit limit{.algorithm = algorithm, .permits = permits, .period_us = period, .capacity = permits};
  if (algorithm == Algorithm::fixed_window) limit.phase_us = bytes.number() % period;
  if (algorithm == Algorithm::sliding_log) limit.events_max = 1 + (bytes.number() & 7);
  if (algorithm == Algorithm::concurrency) limit.permits = limit.capacity = permits & 0xff;
  return limit;
}

void differ(const Decision& expected, const Decision& got) {
  std::fprintf(stderr, "oracle: %s\nC++:    %s\n", test::to_string(expected).c_str(), test::to_string(got).c_str());
  assertion_failed("the C++ answers as the oracle does", __FILE__, __LINE__);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 512) return 0;
  Bytes bytes(data, size);
  const Algorithm algorithm = kAlgorithms[bytes.take(1) % std::size(kAlgorithms)];
  const bool held = algorithm == Algorithm::concurrency;
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
    } else if (held && (op & 0x40) != 0) {
      const std::string id(1, static_cast<char>('a' + (op >> 2 & 3)));
      const bool was_held = oracle->release(now, id);
      if (cell->release(now, id) != was_held) differ({.allowed = was_held}, {.allowed = !was_held});
    } else {
      const std::int64_t cost = (op & 0x10) != 0 && !held ? -bytes.number() : bytes.number();
      const std::int64_t positive = std::max<std::int64_t>(0, cost);
      const std::string id(held && positive > 0 ? 1 : 0, static_cast<char>('a' + (op >> 2 & 3)));  // a peek is nobody's
      last = held ? oracle->acquire(now, id, positive) : oracle->check(now, cost);
      const Decision got = held ? cell->acquire(now, id, positive) : cell->check(now, cost);
      if (!(got == last)) differ(last, got);
    }
  }
  return 0;
}
