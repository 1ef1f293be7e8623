// Simple clients, as people write them first: one script per check, in its fastest plain form, or a counter that
// expires. See contestants.h.
#include <array>

#include "base/file.h"
#include "blocking_client.h"
#include "fleet/contestants.h"

namespace weir::bench {
PlainClient::PlainClient(const base::redis::Target& target, Kind kind) : kind_(kind), client_(target) {
  if (kind == Kind::gcra) {
    script_ = client_.add_script(base::read_file(WEIR_SOURCE_DIR "/bench/rivals/gcra.lua", 1 << 20).value());
  }
  client_.connect();
}

void PlainClient::ask(std::size_t place) {
  Check& check = checks_[place];
  check.begun = read_stopwatch();
  const std::string_view key = keys_->next(check.buffer);
  ++in_flight_;
  if (kind_ == Kind::gcra) {
    const std::array<std::string_view, 4> words{"1", key, emission_, burst_};
    client_.send({.words = words, .script = script_, .reading = redis::Reading::integers}, {this, place});
    return;
  }
  check.name.assign("n:").append(key);  // not the key of the script
  const std::array<std::string_view, 2> incr{"INCR", check.name};
  const std::array<std::string_view, 3> expire{"EXPIRE", check.name, "60"};
  client_.send({.words = incr, .reading = redis::Reading::integers}, {});
  client_.send({.words = expire, .reading = redis::Reading::integers}, {this, place});
}

void PlainClient::on_reply(std::uint64_t tag, const redis::Reply& reply) {
  --in_flight_;
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
  while (in_flight_ > 0) {
    is_ending_ = load.checks > 0 ? times_.count() >= load.checks : read_stopwatch() >= end;
    redis::wait_and_turn(client_, redis::steady_now() + Micros{100'000});
  }
  if (faults_ > 0) throw Missing{"a plain client got errors from Redis"};
  const double took = static_cast<double>((read_stopwatch() - begun).count()) / 1e9;
  return {.checks_per_second = static_cast<double>(times_.count()) / took,
          .p50_us = times_.quantile_ns(0.5) / 1e3,
          .p99_us = times_.quantile_ns(0.99) / 1e3};
}

}  // namespace weir::bench
