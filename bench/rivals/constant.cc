// The maximum that this machine allows a server: it finds the end of each request and always sends the same answer.
//
// RESP commands get the five integers of CL.THROTTLE, HTTP requests without a body an empty 200. One thread and one
// epoll; one read and one write for all requests that arrived together, as in Weir. It picks free ports and prints them
// as `weir serve` does.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unordered_map>

namespace {

constexpr std::string_view kRespAnswer = "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n";
constexpr std::string_view kHttpAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
constexpr std::size_t kBufferSize = 256 << 10;
constexpr int kEvents = 256;

// The size of the first request of the input; 0 if the request is incomplete.
using Measure = std::size_t (*)(std::string_view input);

struct Listener {
  const char* announcement;
  Measure measure;
  std::string_view answer;
};

// Returns the number of the line at `at`, such as `*6\r\n`, and moves `at` behind the line. Negative if the line is
// incomplete.
long read_count(std::string_view input, std::size_t& at) {
  long value = 0;
  for (std::size_t i = at + 1; i < input.size(); ++i) {
    if (input[i] == '\n') {
      at = i + 1;
      return value;
    }
    if (input[i] != '\r') value = value * 10 + (input[i] - '0');
  }
  return -1;
}

std::size_t measure_resp(std::string_view input) {
  std::size_t at = 0;
  const long words = read_count(input, at);
  if (words < 0) return 0;
  for (long i = 0; i < words; ++i) {
    const long size = read_count(input, at);
    if (size < 0) return 0;
    at += static_cast<std::size_t>(size) + 2;
    if (at > input.size()) return 0;
  }
  return at;
}

std::size_t measure_http(std::string_view input) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t end = input.find(kEnd);
  return end == input.npos ? 0 : end + kEnd.size();
}

constexpr std::array<Listener, 2> kListeners = {{{"resp  redis://127.0.0.1:%u\n", measure_resp, kRespAnswer},
                                                 {"http  http://127.0.0.1:%u\n", measure_http, kHttpAnswer}}};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

int listen_on(const Listener& listener) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const general = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, general, size) != 0 || listen(fd, 1'024) != 0) give_up("listen");
  getsockname(fd, general, &size);
  std::printf(listener.announcement, unsigned{ntohs(address.sin_port)});  // NOLINT: a format of the table above
  return fd;
}

struct Connection {
  const Listener* listener = nullptr;
  std::string kept;  // the beginning of an incomplete request
};

class Server {
 public:
  Server() : epoll_(epoll_create1(0)), buffer_(kBufferSize, '\0') {
    for (const Listener& listener : kListeners) {
      const int fd = listen_on(listener);
      listeners_[fd] = &listener;
      watch(fd);
    }
    std::puts("ready");
    std::fflush(stdout);
  }

  [[noreturn]] void run() {
    std::array<epoll_event, kEvents> events;
    while (true) {
      const int count = epoll_wait(epoll_, events.data(), kEvents, -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        if (const auto listener = listeners_.find(fd); listener != listeners_.end()) {
          accept_all(fd, *listener->second);
        } else if (!serve(fd, connections_[fd])) {
          connections_.erase(fd);
          close(fd);
        }
      }
    }
  }

 private:
  void watch(int fd) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void accept_all(int from, const Listener& listener) {
    for (int fd; (fd = accept4(from, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      connections_[fd] = {&listener, {}};
      watch(fd);
    }
  }

  // Returns false when the connection has ended.
  bool serve(int fd, Connection& connection) {
    const ssize_t size = recv(fd, buffer_.data(), buffer_.size(), 0);
    if (size < 0 && errno == EAGAIN) return true;
    if (size <= 0) return false;
    std::string_view input(buffer_.data(), static_cast<std::size_t>(size));
    if (!connection.kept.empty()) input = connection.kept.append(input);
    out_.clear();
    while (const std::size_t taken = connection.listener->measure(input)) {
      out_ += connection.listener->answer;
      input.remove_prefix(taken);
    }
    connection.kept = std::string(input);
    return send_all(fd);
  }

  // Waits for a client that does not read: the client is the load generator, which reads.
  bool send_all(int fd) const {
    for (std::size_t sent = 0; sent < out_.size();) {
      const ssize_t size = send(fd, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
      if (size < 0 && errno != EAGAIN) return false;
      if (size > 0) sent += static_cast<std::size_t>(size);
    }
    return true;
  }

  int epoll_;
  std::string buffer_, out_;
  std::unordered_map<int, const Listener*> listeners_;
  std::unordered_map<int, Connection> connections_;
};

}  // namespace

int main() { Server().run(); }
