// The clients that people write first: a script a check, as fast as a plain one can be, or a counter that expires. See
// contestants.h.
#include <array>
#include <fstream>
#include <iterator>

#include "fleet/contestants.h"
#include "redis/blocking_client.h"

namespace weir::bench {
namespace {

std::string read_gcra() {
  std::ifstream in(std::string(WEIR_SOURCE_DIR) + "/bench/rivals/gcra.lua");
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

PlainClient::PlainClient(const redis::Target& target, Kind kind) : kind_(kind), client_(target) {
  if (kind == Kind::gcra) script_ = client_.add_script(read_gcra());
  client_.connect();
}

void PlainClient::ask(std::size_t place) {
  Check& check = checks_[place];
  check.begun = read_stopwatch();
  const std::string_view key = keys_->next(check.room);
  ++under_way_;
  if (kind_ == Kind::gcra) {
    const std::array<std::string_view, 4> words{"1", key, emission_, burst_};
    client_.send({.words = words, .script = script_, .reading = redis::Reading::integers}, {this, place});
    return;
  }
  check.name.assign("n:").append(key);  // what the script keeps is not counted on
  const std::array<std::string_view, 2> incr{"INCR", check.name};
  const std::array<std::string_view, 3> expire{"EXPIRE", check.name, "60"};
  client_.send({.words = incr, .reading = redis::Reading::integers}, {});
  client_.send({.words = expire, .reading = redis::Reading::integers}, {this, place});
}

void PlainClient::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  --under_way_;
  if (!reply.is_ok()) ++faults_;
  times_.add(read_stopwatch() - checks_[tag].begun);
  if (!is_ending_) ask(tag);
}

Figures PlainClient::run(const Load& load) {
  keys_ = &load.keys;
  emission_ = std::to_string(load.limit.weight / load.limit.rate);
  burst_ = std::to_string(load.limit.capacity);
  checks_.resize(load.in_flight);
  times_ = {};
  is_ending_ = false;
  faults_ = 0;
  const auto begun = read_stopwatch();
  const auto end = begun + std::chrono::nanoseconds{static_cast<std::int64_t>(load.seconds * 1e9)};
  for (std::size_t i = 0; i < load.in_flight; ++i) ask(i);
  client_.flush(redis::steady_now());
  while (under_way_ > 0) {
    is_ending_ = load.checks > 0 ? times_.count() >= load.checks : read_stopwatch() >= end;
    redis::wait_and_turn(client_, redis::steady_now() + Micros{100'000});
  }
  if (faults_ > 0) throw Missing{"a plain client had faults"};
  const double took = static_cast<double>((read_stopwatch() - begun).count()) / 1e9;
  return {.checks_per_second = static_cast<double>(times_.count()) / took,
          .p50_us = times_.quantile_ns(0.5) / 1e3,
          .p99_us = times_.quantile_ns(0.99) / 1e3};
}

}  // namespace weir::bench
