// A connection under load: its socket, its side of the protocol, and the start times of its outstanding requests.
//
// Belongs to one Worker, which decides when it may send and when to read. One thread. Tested by tests/server/load.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "load_generator/exchange.h"
#include "load_generator/histogram.h"
#include "load_generator/keys.h"

namespace weir::load {

class Connection {
 public:
  // Takes ownership of the socket.
  Connection(int fd, std::unique_ptr<Exchange> exchange, std::size_t depth);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const { return fd_; }
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

  const int fd_;
  std::unique_ptr<Exchange> exchange_;
  const std::size_t depth_;
  std::uint64_t asked_ = 0, answered_ = 0;
  std::vector<std::int64_t> since_;  // a ring, indexed by request number
  std::uint64_t mask_;
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_
};

}  // namespace weir::load
