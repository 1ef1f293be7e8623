// One thread's share of the load: some connections, an epoll, and the loop that keeps them busy.
//
// open() connects. run() generates load in the calling thread until the time is over or stop() is called. Any thread
// may call stop(), is_done() and progress(). Call the rest after joining that thread. Tested by tests/server/load.sh.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "load_generator/exchange.h"
#include "load_generator/histogram.h"
#include "load_generator/keys.h"
#include "load_generator/load.h"
#include "load_generator/schedule.h"

namespace weir::load_generator {

// A connection under load: its socket, its side of the protocol, and the start times of its outstanding requests. Its
// worker decides when it may send and when to read.
class Connection {
 public:
  Connection(base::Descriptor socket, std::unique_ptr<Exchange> exchange, std::size_t depth);

  int fd() const { return socket_.get(); }
  std::uint64_t asked() const { return asked_; }
  std::uint64_t answered() const { return answered_; }
  bool wants_to_write() const { return sent_ < out_.size(); }

  bool may_ask() const {
    return asked_ - answered_ < depth_ && since_[asked_ & mask_] == kFree && exchange_->may_ask();
  }
  // Writes one more request into the buffer; its time counts from `since_ns`.
  void ask(Keys& keys, std::int64_t since_ns) {
    since_[asked_++ & mask_] = since_ns;
    exchange_->ask(out_, keys);
  }

  // Sends as much of the buffer as the socket accepts. Returns the number of bytes sent.
  Result<std::size_t> flush();

  // Reads once into `buffer` and records the times of the answers. Returns the number of bytes read.
  Result<std::size_t> read(std::span<char> buffer, Answers& answers, Histogram& times, std::int64_t& now_ns);

  // Visits the start times of the outstanding requests.
  void for_each_waiting(const std::function<void(std::int64_t since_ns)>& visit) const;

 private:
  static constexpr std::int64_t kFree = -1;

  Result<void> take(Answers& answers, Histogram& times, std::int64_t now_ns);

  const base::Descriptor socket_;
  std::unique_ptr<Exchange> exchange_;
  const std::size_t depth_;
  std::uint64_t asked_ = 0, answered_ = 0;
  std::vector<std::int64_t> since_;  // a ring, indexed by request number
  std::uint64_t mask_;
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_
};

class Worker {
 public:
  struct Share {
    std::size_t connections = 1;
    int cpu = -1;
    Keys::Terms keys;
    std::uint64_t rate = 0;
    std::uint64_t requests_max = 0;  // 0: no maximum
  };
  struct Times {
    std::int64_t start_ns = 0, measure_ns = 0, end_ns = 0;
  };
  struct Progress {
    std::uint64_t answered = 0, bytes_out = 0, bytes_in = 0;
  };

  static Result<std::unique_ptr<Worker>> open(const Options& options, const Share& share);
  ~Worker();

  void run(const Times& times);
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool is_done() const { return done_.load(std::memory_order_acquire); }
  Progress progress() const;

  const Histogram& times() const { return histogram_; }
  const Answers& answers() const { return answers_; }
  std::uint64_t unanswered() const { return unanswered_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  Worker(const Options& options, const Share& share, int epoll);

  void make_load(const Times& times);
  void begin_measuring(std::int64_t now_ns);
  bool is_finished(std::int64_t now_ns, const Times& times);
  void release(std::int64_t now_ns, std::int64_t end_ns);
  void pump(std::size_t index, std::int64_t now_ns);
  void wait_and_read(std::int64_t now_ns);
  void handle(std::size_t index, std::uint32_t events);
  void flush(std::size_t index);
  void watch(std::size_t index, bool wants_to_write);
  void count_unanswered();
  bool is_due(std::size_t index) const;

  const Options& options_;
  const Share share_;
  const int epoll_;
  Keys keys_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<bool> watches_writing_;
  std::vector<char> buffer_;

  std::optional<Schedule> schedule_;
  std::uint64_t bursts_ = 0;             // released so far
  std::vector<std::uint64_t> released_;  // due requests of each connection
  std::uint64_t asked_ = 0;

  std::int64_t measure_ns_ = 0;
  bool is_measuring_ = false;
  Answers answers_;
  Histogram histogram_;
  std::uint64_t unanswered_ = 0;
  std::optional<Error> error_;

  std::atomic<bool> stopped_{false}, done_{false};
  std::atomic<std::uint64_t> answered_{0}, bytes_out_{0}, bytes_in_{0};
};

}  // namespace weir::load_generator
