// Sends a request and reads the answer. See http_call.h.
#include "net/http_call.h"

#include <poll.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/nearest.h"
#include "net/connect.h"
#include "net/wire.h"

namespace weir::net {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";

tl::unexpected<Error> unavailable(const std::string& why) { return fail(ErrorCode::unavailable, why); }

bool is_named(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         std::ranges::equal(line.substr(0, name.size()), name, {}, [](char c) { return base::lower(c); });
}

class Caller {
 public:
  explicit Caller(const HttpClientCall& call) : call_(call), deadline_(call.timeout, call.is_ending) {}

  Result<void> connect() {
    auto socket = connect_to(call_.server, deadline_);
    if (!socket) return fail(socket.error());
    auto stream = call_.tls == nullptr ? nullptr : call_.tls->open(call_.server.host);
    if (call_.tls != nullptr && stream == nullptr) return unavailable("out of memory for TLS");
    Wire::Step step = wire_.open(*std::move(socket), std::move(stream));
    while (step == Wire::Step::again) {
      if (!wait_for(wire_.wants_write() ? POLLIN | POLLOUT : POLLIN)) return unavailable("TLS handshake timed out");
      step = wire_.advance();
    }
    if (step == Wire::Step::done) return {};
    return unavailable(wire_.failure() + (wire_.may_lack_tls()
                                              ? "; if this server does not use TLS, write http:// before its address"
                                              : ""));
  }

  Result<void> send() {
    for (std::string_view left = call_.request;;) {
      std::size_t taken = 0;
      const Wire::Step step = wire_.write(left, taken);
      left.remove_prefix(taken);
      if (step == Wire::Step::done) return {};
      if (step == Wire::Step::failed) return unavailable(wire_.failure());
      if (!wait_for(POLLOUT)) return unavailable("sending the request timed out");
    }
  }

  Result<HttpAnswer> receive() {
    for (;;) {
      const Wire::Step step = wire_.read(text_);
      if (auto answer = answer_in(step == Wire::Step::failed && wire_.has_ended())) return *std::move(answer);
      if (step == Wire::Step::failed) return unavailable(wire_.failure());
      if (text_.size() > call_.answer_max + kHeadMax) {
        return unavailable("the answer is longer than " + std::to_string(call_.answer_max) + " bytes");
      }
      if (!wait_for(POLLIN)) return unavailable("the server does not answer");
    }
  }

 private:
  static constexpr std::size_t kHeadMax = 65'536;

  bool wait_for(int events) {
    if (call_.is_timeout_per_step) deadline_ = Deadline(call_.timeout, call_.is_ending);
    return deadline_.wait_for(wire_.descriptor(), static_cast<short>(events));
  }

  // Returns nothing if more must come. Without a length, the answer ends with the connection.
  std::optional<Result<HttpAnswer>> answer_in(bool has_ended) const {
    const std::size_t end = text_.find(kHeadEnd);
    if (end == text_.npos) {
      if (has_ended && !text_.empty()) return unavailable("the answer is not HTTP");
      return std::nullopt;
    }
    const auto head = parse_http_head(std::string_view(text_).substr(0, end + 2));
    if (!head) return unavailable("the answer is not HTTP");
    const std::size_t body = text_.size() - end - kHeadEnd.size();
    const bool is_whole = call_.answer_max == 0 || (head->length ? body >= *head->length : has_ended);
    if (!is_whole) return std::nullopt;
    return HttpAnswer{head->status, text_.substr(end + kHeadEnd.size())};
  }

  const HttpClientCall& call_;
  Deadline deadline_;
  Wire wire_{};
  std::string text_{};
};

}  // namespace

std::optional<HttpHead> parse_http_head(std::string_view text) {
  HttpHead head;
  if (text.size() < 12 || !text.starts_with("HTTP/1.")) return {};
  if (std::from_chars(text.data() + 9, text.data() + 12, head.status).ec != std::errc{}) return {};
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
    constexpr std::string_view kName = "content-length";
    if (!is_named(text, kName)) continue;
    std::string_view value = text.substr(kName.size() + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    std::uint64_t length = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), length).ec != std::errc{}) return {};
    head.length = length;
  }
  if (head.status == 204 || head.status == 304 || head.status < 200) head.length = 0;
  return head;
}

Result<HttpAnswer> call_http(const HttpClientCall& call) {
  Caller caller(call);
  return caller.connect().and_then([&] { return caller.send(); }).and_then([&] { return caller.receive(); });
}

}  // namespace weir::net
