// Sends and reads, and records times. See connection.h.
#include "load_generator/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "weir/clock.h"

namespace weir::load {
namespace {

tl::unexpected<Error> lost(const char* while_doing, int error) {
  return fail(ErrorCode::unavailable,
              std::string("the connection was lost while ") + while_doing + ": " + std::strerror(error));
}

}  // namespace

// The ring has twice the depth, since gRPC may answer out of order.
Connection::Connection(int fd, std::unique_ptr<Exchange> exchange, std::size_t depth)
    : fd_(fd),
      exchange_(std::move(exchange)),
      depth_(depth),
      since_(std::bit_ceil(2 * depth), kFree),
      mask_(since_.size() - 1) {
  exchange_->begin(out_);
}

Connection::~Connection() { close(fd_); }

Result<std::size_t> Connection::flush() {
  std::size_t taken = 0;
  while (sent_ < out_.size()) {
    const ssize_t size = send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return taken;
    if (size < 0) return lost("sending", errno);
    sent_ += static_cast<std::size_t>(size);
    taken += static_cast<std::size_t>(size);
  }
  out_.clear();
  sent_ = 0;
  return taken;
}

Result<std::size_t> Connection::read(std::span<char> buffer, Answers& answers, Histogram& times, std::int64_t& now_ns) {
  const ssize_t size = recv(fd_, buffer.data(), buffer.size(), 0);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (size < 0) return lost("reading", errno);
  if (size == 0) {
    return fail(ErrorCode::unavailable, answered_ == 0 ? "the server closed a connection without an answer; does it "
                                                         "speak this protocol?"
                                                       : "the server closed a connection");
  }
  now_ns = read_stopwatch().count();
  if (auto read = exchange_->read({buffer.data(), static_cast<std::size_t>(size)}, answers, out_); !read) {
    return fail(read.error());
  }
  if (auto taken = take(answers, times, now_ns); !taken) return fail(taken.error());
  return static_cast<std::size_t>(size);
}

Result<void> Connection::take(Answers& answers, Histogram& times, std::int64_t now_ns) {
  for (const std::uint64_t number : answers.answered) {
    std::int64_t& since_ns = since_[number & mask_];
    if (number >= asked_ || since_ns == kFree) {
      return fail(ErrorCode::invalid_argument, "the server sent an answer without a request");
    }
    times.record(static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - since_ns, 0)));
    since_ns = kFree;
  }
  answered_ += answers.answered.size();
  answers.answered.clear();
  return {};
}

void Connection::for_each_waiting(const std::function<void(std::int64_t since_ns)>& visit) const {
  for (const std::int64_t since_ns : since_) {
    if (since_ns != kFree) visit(since_ns);
  }
}

}  // namespace weir::load
