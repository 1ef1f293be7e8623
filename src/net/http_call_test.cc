// Tests how an answer ends, and invalid answers, with a server that sends fixed bytes.
#include "net/http_call.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <memory>
#include <thread>
#include <utility>

#include "net/connect.h"

namespace weir::net {
namespace {

// In place of TLS: bytes pass as they are, and a zero byte stands for close_notify.
class PlainStream final : public TlsStream {
 public:
  Step handshake() override { return Step::done; }
  void take_in(std::string_view cipher) override { in_ += cipher; }
  Step read(std::string& plain) override {
    const std::size_t end = in_.find('\0');
    has_ended_ = has_ended_ || end != in_.npos;
    plain += in_.substr(0, end);
    in_.clear();
    return has_ended_ ? Step::failed : Step::again;
  }
  bool write(std::string_view plain) override {
    out_ += plain;
    return true;
  }
  void move_output(std::string& cipher) override { cipher += std::exchange(out_, {}); }
  bool has_ended() const override { return has_ended_; }
  const std::string& failure() const override { return failure_; }

 private:
  std::string in_, out_;
  bool has_ended_ = false;
  const std::string failure_ = "the server ended the TLS session";
};

struct PlainStreams final : TlsContext {
  bool has_changed() const override { return false; }
  std::unique_ptr<TlsStream> open(const std::string&) const override { return std::make_unique<PlainStream>(); }
};

// What a client gets from a server that sends these bytes to its first client and closes.
Result<HttpAnswer> call(std::string_view bytes, std::size_t answer_max = 1'000, const TlsContext* tls = nullptr) {
  const base::Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  const std::jthread server([&] {
    const base::Descriptor client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    char request[1'000];
    EXPECT_GT(::recv(client.get(), request, sizeof request, 0), 0);
    EXPECT_EQ(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  });
  return call_http({.server = {.host = "127.0.0.1", .port = ntohs(place.sin_port)},
                    .tls = tls,
                    .request = "GET / HTTP/1.1\r\n\r\n",
                    .answer_max = answer_max,
                    .timeout = std::chrono::minutes{1}});
}

TEST(HttpClientCall, EndsTheAnswerAsItsHeadSays) {
  EXPECT_EQ(call("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").value().body, "ok");
  EXPECT_EQ(call("HTTP/1.1 429 Too Many\r\n\r\nuntil the end").value().body, "until the end");
  EXPECT_EQ(call("HTTP/1.1 503 Away\r\nContent-Length: 9000\r\n\r\n", 0).value().status, 503)
      << "only the status is read";
}

// An attacker can close the TCP connection, so its end alone does not prove that the answer is complete.
TEST(HttpClientCall, EndsATlsAnswerWithoutALengthOnlyByCloseNotify) {
  const PlainStreams tls;
  const std::string head = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(call(head + "\r\nwhole" + '\0', 1'000, &tls).value().body, "whole");
  EXPECT_EQ(call(head + "\r\npart", 1'000, &tls).error().message, "the server closed the connection");
  EXPECT_EQ(call(head + "Content-Length: 2\r\n\r\nok", 1'000, &tls).value().body, "ok");
}

TEST(HttpClientCall, ReportsInvalidAnswers) {
  const auto error_of = [](std::string_view bytes) { return call(bytes).error().message; };
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"), "the server closed the connection");
  EXPECT_EQ(error_of("-ERR unknown command\r\n"), "the answer is not HTTP");
  EXPECT_EQ(error_of(""), "the server closed the connection");
  EXPECT_EQ(error_of("HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, 'x')), "the answer is longer than 1000 bytes");
}

}  // namespace
}  // namespace weir::net
