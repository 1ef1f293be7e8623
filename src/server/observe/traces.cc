// The queue of spans, its thread, and the pauses after failures. See traces.h.
#include "server/observe/traces.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/nearest.h"
#include "base/random_id.h"
#include "base/text.h"
#include "log/log.h"
#include "net/http_call.h"

namespace weir::server::observe {
namespace {

constexpr std::size_t kQueueMax = 2'048;  // spans
constexpr std::size_t kBatchMax = 512;
constexpr std::chrono::seconds kBatchWait{1};
constexpr std::chrono::seconds kRestMax{30};
constexpr std::chrono::seconds kTimeout{5};

// For sampling and span ids: fast, and it does not matter if they can be predicted.
std::uint64_t random_bits() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    return std::mt19937_64(std::uint64_t{device()} << 32 | device());
  }();
  return random();
}

std::string random_digits() {
  std::string digits(16, '0');
  std::uint64_t bits = random_bits() | 1;  // never all zero
  for (char& digit : digits) {
    digit = base::kHexDigits[bits & 15];
    bits >>= 4;
  }
  return digits;
}

// Per OTLP, only these may be retried.
bool may_pass_later(int status) { return status == 429 || status == 502 || status == 503 || status == 504; }

}  // namespace

struct Traces::State {
  explicit State(const TraceOptions& options)
      : collector(options.collector), path(options.path), resource{options.version, base::random_id()} {}

  const base::Endpoint collector;
  const std::string path;
  const protocol::TraceResource resource;
  std::atomic<std::uint64_t> sent{0}, dropped{0};
  std::atomic<bool> is_ending{false};
  base::Mutex mutex;
  std::condition_variable changed, ended;
  std::deque<protocol::TraceSpan> queue GUARDED_BY(mutex);
  bool is_over GUARDED_BY(mutex) = false;

  void run();
  std::vector<protocol::TraceSpan> next_batch();
  bool send(const std::vector<protocol::TraceSpan>& batch, bool& is_away);
};

std::vector<protocol::TraceSpan> Traces::State::next_batch() {
  base::MutexLock lock(mutex);
  while (queue.empty() && !is_ending) changed.wait(lock);
  changed.wait_for(lock, kBatchWait, [&]() REQUIRES(mutex) { return queue.size() >= kBatchMax || is_ending; });
  const auto end = queue.begin() + static_cast<std::ptrdiff_t>(std::min(queue.size(), kBatchMax));
  std::vector<protocol::TraceSpan> batch(std::make_move_iterator(queue.begin()), std::make_move_iterator(end));
  queue.erase(queue.begin(), end);
  return batch;
}

// Returns false if it is worth another try. Logs a change of `is_away` once.
bool Traces::State::send(const std::vector<protocol::TraceSpan>& batch, bool& is_away) {
  const std::string body = protocol::write_otlp(resource, batch);
  const auto answer = net::call_http({.server = collector,
                                      .request = "POST " + path + " HTTP/1.1\r\nHost: " + base::to_string(collector) +
                                                 "\r\nContent-Type: application/json\r\nContent-Length: " +
                                                 std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body,
                                      .timeout = kTimeout,
                                      .is_ending = &is_ending});
  const int status = answer ? answer->status : 0;
  if (status >= 200 && status < 300) {
    sent += batch.size();
    if (std::exchange(is_away, false))
      log::log(log::LogLevel::info, "trace export resumed", {{"host", collector.host}});
    return true;
  }
  const std::string why = answer ? "the collector answered " + std::to_string(status) : answer.error().message;
  if (!std::exchange(is_away, true)) {
    log::log(log::LogLevel::warn, "trace export failed",
             {{"host", collector.host}, {"port", std::to_string(collector.port)}, {"error", why}});
  }
  if (!answer || may_pass_later(status)) return false;
  dropped += batch.size();
  return true;
}

void Traces::State::run() {
  bool is_away = false;
  while (true) {
    const std::vector<protocol::TraceSpan> batch = next_batch();
    if (batch.empty()) break;  // ending
    std::chrono::seconds time{1};
    while (!send(batch, is_away)) {
      if (is_ending) {
        dropped += batch.size();
        break;
      }
      base::MutexLock lock(mutex);
      changed.wait_for(lock, time, [&] { return is_ending.load(); });
      time = std::min(2 * time, kRestMax);
    }
  }
  const base::MutexLock lock(mutex);
  is_over = true;
  ended.notify_all();
}

Traces::Traces(const TraceOptions& options)
    : threshold_(static_cast<std::uint64_t>(std::ldexp(std::clamp(options.sample, 0.0, 1.0), 32))),
      state_(std::make_shared<State>(options)) {
  std::thread([state = state_] { state->run(); }).detach();
}

// A thread that still waits for a resolver is abandoned; the process ends.
Traces::~Traces() { finish(std::chrono::milliseconds(0)); }

bool Traces::finish(std::chrono::milliseconds most) {
  base::MutexLock lock(state_->mutex);
  state_->is_ending = true;
  state_->changed.notify_all();
  return state_->ended.wait_for(lock, most, [&]() REQUIRES(state_->mutex) { return state_->is_over; });
}

std::unique_ptr<protocol::TraceSpan> Traces::begin(const std::optional<protocol::TraceParent>& parent) {
  const bool is_recorded = parent && parent->is_sampled;
  if (!is_recorded && random_bits() >> 32 >= threshold_) return nullptr;
  auto span = std::make_unique<protocol::TraceSpan>();
  span->span_id = random_digits();
  if (parent) {
    span->trace_id.assign(parent->trace_id.data(), parent->trace_id.size());
    span->parent_id.assign(parent->span_id.data(), parent->span_id.size());
  } else {
    span->trace_id = random_digits() + random_digits();
  }
  return span;
}

void Traces::end(std::unique_ptr<protocol::TraceSpan> span) noexcept {
  try {
    const base::MutexLock lock(state_->mutex);
    if (state_->queue.size() < kQueueMax) {
      state_->queue.push_back(std::move(*span));
      const std::size_t waiting = state_->queue.size();
      if (waiting == 1 || waiting == kBatchMax) state_->changed.notify_one();
      return;
    }
  } catch (...) {  // no memory for it
  }
  ++state_->dropped;
}

TraceCounts Traces::counts() const { return {state_->sent.load(), state_->dropped.load()}; }

Result<TraceOptions> parse_trace_target(std::string_view url) {
  constexpr std::string_view kScheme = "http://", kPath = "/v1/traces", kPort = "4318";
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                base::in_quotes(url) + std::string(why) + "; write http://127.0.0.1:4318 or http://HOST:PORT/PATH");
  };
  if (url.starts_with("https://"))
    return wrong(": traces are sent over plain HTTP only; use a collector on this machine or network");
  if (!url.starts_with(kScheme)) return wrong(" is not the URL of a collector");
  std::string_view rest = url.substr(kScheme.size());
  if (std::ranges::any_of(rest, [](char c) { return c <= ' ' || c > '~'; }))
    return wrong(" has a space, control character or non-ASCII character");
  TraceOptions options;
  const std::size_t slash = rest.find('/');
  options.path = slash == rest.npos || slash + 1 == rest.size() ? kPath : rest.substr(slash);
  rest = rest.substr(0, slash);
  const auto parts = base::split_host_port(rest);
  if (!parts) return wrong(" lacks a closing ]");
  const auto port = base::to_number<std::uint16_t>(parts->port.value_or(kPort));
  if (parts->host.empty() || !port) return wrong(" lacks a host or a valid port");
  options.collector = {.host = std::string(parts->host), .port = *port};
  return options;
}

}  // namespace weir::server::observe
