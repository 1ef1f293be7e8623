// The loop of a load-generating thread. See worker.h.
#include "load_generator/worker.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "net/connect.h"
#include "weir/clock.h"

namespace weir::load_generator {
namespace {

constexpr std::size_t kBufferSize = 256 << 10;
constexpr std::int64_t kLookUpNs = 50'000'000;          // maximum wait, so that the end is noticed
constexpr std::int64_t kSpinNs = 60'000;                // a sleep may end this much later than asked
constexpr std::int64_t kLastAnswersNs = 1'000'000'000;  // for the last answers, in an open loop

void pin_to(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

void add(std::atomic<std::uint64_t>& sum, std::uint64_t value) {
  sum.store(sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);  // only this thread writes
}

tl::unexpected<Error> lost(const char* while_doing, int error) {
  return fail(ErrorCode::unavailable,
              std::string("the connection was lost while ") + while_doing + ": " + std::strerror(error));
}

}  // namespace

// The ring has twice the depth, since gRPC may answer out of order.
Connection::Connection(base::Descriptor socket, std::unique_ptr<Exchange> exchange, std::size_t depth)
    : socket_(std::move(socket)),
      exchange_(std::move(exchange)),
      depth_(depth),
      since_(std::bit_ceil(2 * depth), kFree),
      mask_(since_.size() - 1) {
  exchange_->begin(out_);
}

Result<std::size_t> Connection::flush() {
  std::size_t taken = 0;
  while (sent_ < out_.size()) {
    const ssize_t size = send(fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
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
  const ssize_t size = recv(fd(), buffer.data(), buffer.size(), 0);
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

Worker::Worker(const Options& options, const Share& share, int epoll)
    : options_(options), share_(share), epoll_(epoll), keys_(share.keys), buffer_(kBufferSize) {}

Worker::~Worker() { close(epoll_); }

Result<std::unique_ptr<Worker>> Worker::open(const Options& options, const Share& share) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0)
    return fail(ErrorCode::unavailable, std::string("cannot create an epoll instance: ") + std::strerror(errno));
  std::unique_ptr<Worker> worker(new Worker(options, share, epoll));
  for (std::size_t i = 0; i < share.connections; ++i) {
    auto socket = net::connect_to(options.target, net::Deadline(kTimeout));
    if (!socket) return fail(socket.error());
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, socket->get(), &event);
    worker->connections_.push_back(
        std::make_unique<Connection>(*std::move(socket), options.make_exchange(), options.depth));
  }
  worker->watches_writing_.resize(share.connections);
  worker->released_.resize(share.connections);
  return worker;
}

Worker::Progress Worker::progress() const {
  return {answered_.load(std::memory_order_relaxed), bytes_out_.load(std::memory_order_relaxed),
          bytes_in_.load(std::memory_order_relaxed)};
}

void Worker::run(const Times& times) {
  pin_to(share_.cpu);
  prctl(PR_SET_TIMERSLACK, 1);
  make_load(times);
  done_.store(true, std::memory_order_release);
}

void Worker::make_load(const Times& times) {
  measure_ns_ = times.measure_ns;
  if (share_.rate > 0) {
    schedule_.emplace(Schedule::Terms{
        .rate = share_.rate, .burst = options_.burst, .connections = connections_.size(), .start_ns = times.start_ns});
  }
  for (std::size_t i = 0; i < connections_.size(); ++i) pump(i, read_stopwatch().count());
  while (!error_) {
    const std::int64_t now_ns = read_stopwatch().count();
    begin_measuring(now_ns);
    if (is_finished(now_ns, times)) break;
    if (schedule_) release(now_ns, times.end_ns);
    wait_and_read(now_ns);
  }
  if (schedule_) count_unanswered();
}

// From the end of the warm-up on, forgets what came before.
void Worker::begin_measuring(std::int64_t now_ns) {
  if (is_measuring_ || now_ns < measure_ns_) return;
  is_measuring_ = true;
  histogram_.clear();
  answers_.denied = answers_.errors = 0;
}

bool Worker::is_finished(std::int64_t now_ns, const Times& times) {
  if (stopped_.load(std::memory_order_relaxed)) return true;
  if (share_.requests_max > 0) return answered_.load(std::memory_order_relaxed) >= share_.requests_max;
  if (!schedule_ || now_ns < times.end_ns) return now_ns >= times.end_ns;
  if (now_ns >= times.end_ns + kLastAnswersNs) return true;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    if (connections_[i]->answered() < released_[i]) return false;
  }
  return true;
}

// Releases all requests that are due by now. None become due after the end.
void Worker::release(std::int64_t now_ns, std::int64_t end_ns) {
  const std::int64_t until_ns = std::min(now_ns, end_ns);
  const std::uint64_t before = bursts_;
  while (schedule_->burst_due_ns(bursts_) <= until_ns) {
    released_[schedule_->connection_of(bursts_)] += schedule_->burst();
    ++bursts_;
  }
  const std::uint64_t touched = std::min<std::uint64_t>(bursts_ - before, connections_.size());
  for (std::uint64_t i = 0; i < touched && !error_; ++i) pump(schedule_->connection_of(before + i), now_ns);
}

bool Worker::is_due(std::size_t index) const {
  if (schedule_) return connections_[index]->asked() < released_[index];
  return share_.requests_max == 0 || asked_ < share_.requests_max;
}

void Worker::pump(std::size_t index, std::int64_t now_ns) {
  Connection& connection = *connections_[index];
  while (is_due(index) && connection.may_ask()) {
    connection.ask(keys_, schedule_ ? schedule_->due_ns(index, connection.asked()) : now_ns);
    ++asked_;
  }
  flush(index);
}

void Worker::flush(std::size_t index) {
  Connection& connection = *connections_[index];
  const auto sent = connection.flush();
  if (!sent) {
    error_ = sent.error();
    return;
  }
  add(bytes_out_, *sent);
  if (connection.wants_to_write() != watches_writing_[index]) watch(index, connection.wants_to_write());
}

void Worker::watch(std::size_t index, bool wants_to_write) {
  watches_writing_[index] = wants_to_write;
  epoll_event event{.events = EPOLLIN | (wants_to_write ? EPOLLOUT : 0U), .data = {.u64 = index}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, connections_[index]->fd(), &event);
}

void Worker::wait_and_read(std::int64_t now_ns) {
  std::array<epoll_event, 256> events;
  std::int64_t wait_ns = kLookUpNs;
  if (schedule_) wait_ns = std::clamp<std::int64_t>(schedule_->burst_due_ns(bursts_) - now_ns, 0, kLookUpNs);
  wait_ns = schedule_ && wait_ns < kSpinNs ? 0 : wait_ns - (schedule_ ? kSpinNs : 0);
  const timespec timeout{.tv_sec = 0, .tv_nsec = wait_ns};
  const int count = epoll_pwait2(epoll_, events.data(), events.size(), &timeout, nullptr);
  for (int i = 0; i < count && !error_; ++i) {
    handle(events[static_cast<std::size_t>(i)].data.u64, events[static_cast<std::size_t>(i)].events);
  }
}

void Worker::handle(std::size_t index, std::uint32_t events) {
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return flush(index);
  if (!is_measuring_) begin_measuring(read_stopwatch().count());  // the warm-up may have ended during the wait
  std::int64_t now_ns = 0;
  Connection& connection = *connections_[index];
  const std::uint64_t before = connection.answered();
  const auto size = connection.read(buffer_, answers_, histogram_, now_ns);
  if (!size) {
    error_ = size.error();
    return;
  }
  add(bytes_in_, *size);
  add(answered_, connection.answered() - before);
  pump(index, now_ns);
}

// Counts waits that are not over. They are the longest: without them, a server that stops answering would look fast.
void Worker::count_unanswered() {
  const std::int64_t now_ns = read_stopwatch().count();
  const auto record = [&](std::int64_t since_ns) {
    histogram_.record(static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - since_ns, 0)));
    ++unanswered_;
  };
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i]->for_each_waiting(record);
    for (std::uint64_t n = connections_[i]->asked(); n < released_[i]; ++n) record(schedule_->due_ns(i, n));
  }
}

}  // namespace weir::load_generator
