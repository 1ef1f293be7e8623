// Resolves and connects, writes the request, and reads the status line. See trace_post.h.
#include "server/observe/trace_post.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/descriptor.h"
#include "weir/clock.h"

namespace weir {
namespace {

using std::chrono::nanoseconds;

constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::seconds kLastPatience{1};
constexpr int kSliceMs = 50;

struct Names {
  ~Names() {
    if (first != nullptr) ::freeaddrinfo(first);
  }
  addrinfo* first = nullptr;
};

// When a wait must end; once the server ends, that is sooner.
class Deadline {
 public:
  explicit Deadline(const std::atomic<bool>& is_ending) : is_ending_(is_ending), at_(read_stopwatch() + kPatience) {}

  // The first of `sharers` consecutive attempts gets an equal share, so that none uses up the time of the later ones.
  Deadline share(std::size_t sharers) const {
    Deadline part = *this;
    const nanoseconds now = read_stopwatch();
    part.at_ = now + (at_ - now) / static_cast<std::int64_t>(sharers);
    return part;
  }

  bool is_over() {
    const nanoseconds now = read_stopwatch();
    if (is_ending_ && !is_last_) {
      is_last_ = true;
      at_ = std::min(at_, now + nanoseconds(kLastPatience));
    }
    return now >= at_;
  }

 private:
  const std::atomic<bool>& is_ending_;
  nanoseconds at_;
  bool is_last_ = false;
};

tl::unexpected<Error> failed(std::string_view what, int error) {
  return fail(ErrorCode::unavailable, std::string(what) + ": " + std::strerror(error));
}

// False when the time is over.
bool wait_for(int socket, short events, Deadline& deadline) {
  while (!deadline.is_over()) {
    pollfd watched{socket, events, 0};
    if (::poll(&watched, 1, kSliceMs) > 0) return true;
  }
  return false;
}

Result<Descriptor> connect_to(const addrinfo& to, Deadline& deadline) {
  Descriptor socket(::socket(to.ai_family, to.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to.ai_protocol));
  if (!socket) return failed("cannot create a socket", errno);
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return failed("cannot connect", errno);
  if (!wait_for(socket.get(), POLLOUT, deadline)) return failed("cannot connect", ETIMEDOUT);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return failed("cannot connect", error);
  return socket;
}

Result<void> write_all(int socket, std::string_view text, Deadline& deadline) {
  while (!text.empty()) {
    if (!wait_for(socket, POLLOUT, deadline)) return failed("cannot send the spans", ETIMEDOUT);
    const ssize_t size = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (size < 0 && errno != EAGAIN && errno != EINTR) return failed("cannot send the spans", errno);
    if (size > 0) text.remove_prefix(static_cast<std::size_t>(size));
  }
  return {};
}

// "HTTP/1.1 200"
Result<int> read_status(int socket, Deadline& deadline) {
  constexpr std::size_t kStatusEnd = 12;
  std::string line;
  std::array<char, 256> bytes{};
  while (line.size() < kStatusEnd) {
    if (!wait_for(socket, POLLIN, deadline)) return failed("the collector does not answer", ETIMEDOUT);
    const ssize_t size = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (size == 0) return fail(ErrorCode::unavailable, "the collector closed the connection without an answer");
    if (size < 0 && errno != EAGAIN && errno != EINTR) return failed("cannot read the answer", errno);
    if (size > 0) line.append(bytes.data(), static_cast<std::size_t>(size));
  }
  int status = 0;
  const auto [end, error] = std::from_chars(line.data() + 9, line.data() + kStatusEnd, status);
  if (!line.starts_with("HTTP/1.") || error != std::errc{} || end != line.data() + kStatusEnd) {
    return fail(ErrorCode::unavailable, "the answer is not HTTP");
  }
  return status;
}

}  // namespace

std::string host_field(const PostTarget& target) {
  const bool is_v6 = target.host.find(':') != target.host.npos;
  return (is_v6 ? "[" + target.host + "]" : target.host) + ":" + target.port;
}

Result<int> post_json(const PostTarget& target, const std::string& body, const std::atomic<bool>& is_ending) {
  Deadline deadline(is_ending);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  Names names;
  if (const int error = ::getaddrinfo(target.host.c_str(), target.port.c_str(), &wanted, &names.first); error != 0) {
    return fail(ErrorCode::unavailable, "cannot resolve " + target.host + ": " + ::gai_strerror(error));
  }
  Result<Descriptor> socket = fail(ErrorCode::unavailable, "no address");
  std::size_t left = 0;
  for (const addrinfo* to = names.first; to != nullptr; to = to->ai_next) ++left;
  for (const addrinfo* to = names.first; to != nullptr && !socket; to = to->ai_next, --left) {
    Deadline part = deadline.share(left);
    socket = connect_to(*to, part);
  }
  if (!socket) return fail(std::move(socket.error()));
  const std::string head = "POST " + target.path + " HTTP/1.1\r\nHost: " + host_field(target) +
                           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
                           "\r\nConnection: close\r\n\r\n";
  return write_all(socket->get(), head, deadline)
      .and_then([&] { return write_all(socket->get(), body, deadline); })
      .and_then([&] { return read_status(socket->get(), deadline); });
}

}  // namespace weir
