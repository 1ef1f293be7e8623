// The counters of a loop, for each of its listeners; /metrics shows them.
//
// One thread writes, any thread may read: a value may be slightly old, but is never torn. The metric names are in
// metrics.cc. Tested by counts_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::server::loop {

// Incremented by one thread, read by any.
class Count {
 public:
  void add(std::uint64_t n = 1) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

// A histogram of durations. kEnds are the upper bounds of its buckets in microseconds; the last bucket has none.
class Times {
 public:
  static constexpr std::array<std::int64_t, 14> kEnds = {10,    25,    50,     100,    250,     500,     1'000,
                                                         2'500, 5'000, 10'000, 25'000, 100'000, 500'000, 1'000'000};

  void add(std::int64_t us, std::uint64_t times = 1) {
    std::size_t i = 0;
    while (i < kEnds.size() && us > kEnds[i]) ++i;
    counts_[i].add(times);
    sum_us_.add(static_cast<std::uint64_t>(us < 0 ? 0 : us) * times);
  }
  std::uint64_t count(std::size_t bucket) const { return counts_[bucket].get(); }
  std::uint64_t sum_us() const { return sum_us_.get(); }

 private:
  std::array<Count, kEnds.size() + 1> counts_{};
  Count sum_us_{};
};

// Why the server refused a client or cut it off. Most are bounds that an operator can set.
enum class Refused : std::uint8_t {
  connections,  // the number of open connections is at its bound
  buffers,      // the memory of all connections is at its bound
  slow,         // a request was begun and not finished in time
  unread,       // the client does not read its answers
  header,       // a header above its bound
  body,
  key,
  pipeline,   // unprocessed messages of a connection, or delayed answers of a loop, at their bound
  streams,    // HTTP/2: streams or resets
  malformed,  // not the protocol of this listener
  proxy,      // no PROXY header, or not from a trusted proxy
  tls,        // no handshake, or no accepted client certificate
  overload,   // shed: the loop has more requests than it can answer in time
  token,      // the admin token is missing or wrong
  password,   // a wrong password of a Redis client
  origin,     // a web page whose origin is not allowed
};
inline constexpr std::size_t kRefusals = 16;

struct ListenerCounts {
  Count accepted{};
  Count requests{};
  Count bytes_in{};
  Count bytes_out{};
  Times seconds{};  // from reading a request to writing its answer; delayed answers are not included
  std::array<Count, kRefusals> refused{};

  void refuse(Refused why, std::uint64_t n = 1) { refused[static_cast<std::size_t>(why)].add(n); }
  std::uint64_t count(Refused why) const { return refused[static_cast<std::size_t>(why)].get(); }
};

enum class ListenerName : std::uint8_t { http, grpc, resp, admin };
inline constexpr std::size_t kListeners = 4;
inline constexpr std::array kEveryListener = {ListenerName::http, ListenerName::grpc, ListenerName::resp,
                                              ListenerName::admin};

// One value for each listener.
template <class T>
struct PerListener : std::array<T, kListeners> {
  constexpr T& operator[](ListenerName name) { return this->data()[static_cast<std::size_t>(name)]; }
  constexpr const T& operator[](ListenerName name) const { return this->data()[static_cast<std::size_t>(name)]; }
};
inline constexpr PerListener<std::string_view> kListenerNames = {{{"http", "grpc", "resp", "admin"}}};

// The counters of one loop.
struct LoopCounts {
  PerListener<ListenerCounts> listeners{};
  Count turns{};
  Count ticks{};  // seconds that the loop has counted; if this stands still, the loop hangs
};

}  // namespace weir::server::loop
