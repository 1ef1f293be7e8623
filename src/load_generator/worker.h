// One thread's share of the load: some connections, an epoll, and the loop that keeps them busy.
//
// open() connects. run() generates load in the calling thread until the time is over or stop() is called. Any thread
// may call stop(), is_done() and progress(). Call the rest after joining that thread. Tested by tests/server/load.sh.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "load_generator/connection.h"
#include "load_generator/load.h"
#include "load_generator/schedule.h"

namespace weir::load {

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

  bool is_measuring_ = false;
  Answers answers_;
  Histogram histogram_;
  std::uint64_t unanswered_ = 0;
  std::optional<Error> error_;

  std::atomic<bool> stopped_{false}, done_{false};
  std::atomic<std::uint64_t> answered_{0}, bytes_out_{0}, bytes_in_{0};
};

}  // namespace weir::load
