// HTTP/1.1 on Beast's parser, which is all of Beast that is used. See http_session.h.
//
// Answers are written by hand: a status line, a few fields, a body, appended to what the connection sends next.
#include "server/http_session.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "nearest.h"
#include "server/http_api.h"

namespace weir {
namespace {

namespace http = boost::beast::http;
using BeastError = boost::beast::error_code;
using Parser = http::request_parser<http::string_body>;

std::string_view plain(boost::beast::string_view text) { return {text.data(), text.size()}; }

enum class Connection : std::uint8_t { keep, close };

struct Framing {
  Connection connection = Connection::keep;
  bool is_http10 = false;
  bool is_head = false;
};

void append_answer(std::string& out, const HttpAnswer& answer, const Framing& framing, Micros now) {
  out.append("HTTP/1.1 ").append(std::to_string(answer.status)).append(" ");
  out.append(plain(http::obsolete_reason(static_cast<http::status>(answer.status)))).append("\r\n");
  out.append("Date: ").append(http_date(now)).append("\r\nContent-Type: ").append(answer.content_type);
  out.append("\r\nContent-Length: ").append(std::to_string(answer.body.size())).append("\r\n");
  for (const Header& header : answer.headers) {
    out.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  if (framing.connection == Connection::close) {
    out.append("Connection: close\r\n");
  } else if (framing.is_http10) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
  if (!framing.is_head) out.append(answer.body);
}

HttpAnswer not_http(std::string_view input, const BeastError& error) {
  if (input.starts_with('\x16')) {
    return problem_answer(400, "Bad request", "this looks like TLS, but this port speaks plain HTTP; use http://");
  }
  if (input.starts_with("PRI * HTTP/2")) {
    return problem_answer(400, "Bad request", "this looks like HTTP/2, but this port speaks HTTP/1.1; use that");
  }
  if (input.starts_with('*') || input.starts_with("PING") || input.starts_with("HELLO") || input.starts_with("CL.")) {
    return problem_answer(400, "Bad request",
                          "this looks like RESP, but this port speaks HTTP/1.1; Redis clients use "
                          "the other port");
  }
  return problem_answer(400, "Bad request", "this is not HTTP/1.1: " + error.message());
}

HttpAnswer too_much_header() {
  return problem_answer(431, "Header too large",
                        "the header, the extension of a chunk or the trailer is larger than " +
                            std::to_string(kHttpHeaderMax) + " bytes");
}

HttpAnswer too_many_fields() {
  return problem_answer(431, "Header too large",
                        "the header has more than " + std::to_string(kHttpFieldsMax) + " fields");
}

// unsure_framing()
//
// Where the body ends must be beyond doubt, or a proxy in front may see another request than we do. Beast looks only
// whether the last coding is `chunked` and ignores the others, so this is stricter.
std::optional<HttpAnswer> unsure_framing(const Parser::value_type& request) {
  const auto codings = request.count(http::field::transfer_encoding);
  if (codings == 0) return std::nullopt;
  if (request.version() < 11) {
    return problem_answer(400, "Bad request", "HTTP/1.0 has no Transfer-Encoding; send Content-Length");
  }
  if (request.count(http::field::content_length) > 0) {
    return problem_answer(400, "Bad request", "send Transfer-Encoding or Content-Length, not both");
  }
  const std::string_view value = plain(request[http::field::transfer_encoding]);
  if (codings == 1 && lower(value) == "chunked") return std::nullopt;
  const std::string detail = "the only Transfer-Encoding understood here is chunked, found " + in_quotes(value);
  const std::string_view before = value.substr(0, value.find(','));
  const bool is_chunked_last =
      codings == 1 && lower(value).ends_with("chunked") && before.size() < value.size() && lower(before) != "chunked";
  if (is_chunked_last) return problem_answer(501, "Not implemented", detail);
  return problem_answer(400, "Bad request", detail);
}

HttpAnswer parse_problem(std::string_view input, const BeastError& error) {
  if (error == http::error::header_limit) return too_much_header();
  if (error == http::error::body_limit) {
    return problem_answer(413, "Body too large", "the body is larger than " + std::to_string(kHttpBodyMax) + " bytes");
  }
  return not_http(input, error);
}

HttpAnswer busy(std::string detail) {
  HttpAnswer answer = problem_answer(503, "Busy", std::move(detail));
  answer.headers.push_back({"Retry-After", "1"});
  return answer;
}

HttpAnswer last_words(GiveUp why) {
  switch (why) {
    case GiveUp::too_slow:
      break;
    case GiveUp::no_room:
      return busy("all connections together hold as much memory as they may; try again shortly");
    case GiveUp::too_crowded:
      return busy("too many connections are open; try again shortly");
  }
  return problem_answer(408, "Request timeout", "the request was not finished in time");
}

class HttpSession final : public Session {
 public:
  explicit HttpSession(HttpService& service) : service_(service) { begin_request(); }

  Progress consume(std::string_view input, Turn&, std::string& output) override {
    Progress progress;
    while (progress.consumed < input.size() && !progress.close) {
      if (output.size() >= kOutputMax) {
        progress.full = true;
        break;
      }
      const std::string_view rest = input.substr(progress.consumed);
      if (!parser_->got_some() && rest.front() == '\r') {  // empty lines before a request ask for nothing
        if (rest.size() == 1) break;
        if (rest[1] == '\n') {
          progress.consumed += 2;
          continue;
        }
      }
      BeastError error;
      const std::size_t used = parser_->put(boost::asio::const_buffer(rest.data(), rest.size()), error);
      progress.consumed += used;
      const bool needs_more = error == http::error::need_more;
      if (auto refusal = refuse(rest, used, error)) {
        append_answer(output, *refusal, {Connection::close}, service_.limiter.now());
        progress.close = true;
        begin_request();  // nothing of it is kept while the connection lingers
      } else if (parser_->is_done()) {
        progress.close = answer(output) == Connection::close;
        ++progress.answered;
        begin_request();
      } else {
        invite_body(output);
        if (needs_more || used == 0) break;
      }
    }
    const bool begun = progress.consumed < input.size() || parser_->got_some();
    progress.phase = parser_->is_header_done() ? Phase::body : begun ? Phase::header : Phase::idle;
    return progress;
  }

  void drain(std::string&) override { is_draining_ = true; }

  void give_up(GiveUp why, std::string& output) override {
    append_answer(output, last_words(why), {Connection::close}, service_.limiter.now());
    begin_request();  // what was read of the body is of no use any more
  }

  std::size_t held() const override { return parser_->get().body().size() + field_count() * kFieldBytes; }

 private:
  static constexpr std::size_t kFieldBytes = 128;  // that a field takes beside its text, generously

  std::size_t field_count() const {
    const auto& fields = parser_->get();
    return static_cast<std::size_t>(std::distance(fields.begin(), fields.end()));
  }

  // Why a request is not read further, if it is not; `used` of `rest` was parsed last.
  std::optional<HttpAnswer> refuse(std::string_view rest, std::size_t used, const BeastError& error) const {
    if (error && error != http::error::need_more) return parse_problem(rest, error);
    if (parser_->is_header_done()) {
      if (field_count() > kHttpFieldsMax) return too_many_fields();
      if (auto unsure = unsure_framing(parser_->get())) return unsure;
    }
    // Beast bounds neither the extension of a chunk nor a trailer: it waits for their end, whatever comes.
    if (error && rest.size() - used > kHttpHeaderMax) return too_much_header();
    return std::nullopt;
  }

  void begin_request() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(kHttpHeaderMax));
    parser_->body_limit(kHttpBodyMax);
    parser_->eager(true);
    is_invited_ = false;
  }

  // A client that asked whether to send its body is told once that it may.
  void invite_body(std::string& output) {
    if (is_invited_ || !parser_->is_header_done() || parser_->get().version() < 11) return;
    if (!boost::beast::iequals(parser_->get()[http::field::expect], "100-continue")) return;
    output.append("HTTP/1.1 100 Continue\r\n\r\n");
    is_invited_ = true;
  }

  Connection answer(std::string& output) {
    const auto& request = parser_->get();
    Framing framing;
    framing.is_http10 = request.version() < 11;
    framing.is_head = request.method() == http::verb::head;
    const bool has_host = request.count(http::field::host) == 1;
    if (!request.keep_alive() || is_draining_ || (!has_host && !framing.is_http10)) {
      framing.connection = Connection::close;
    }
    if (!has_host && !framing.is_http10) {
      append_answer(output, problem_answer(400, "Bad request", "HTTP/1.1 needs exactly one Host header"), framing,
                    service_.limiter.now());
      return framing.connection;
    }
    const HttpCall call{plain(request.method_string()), plain(request.target()), request.body()};
    append_answer(output, answer_call(call, service_), framing, service_.limiter.now());
    return framing.connection;
  }

  HttpService& service_;
  std::optional<Parser> parser_;
  bool is_invited_ = false;
  bool is_draining_ = false;
};

}  // namespace

std::unique_ptr<Session> make_http_session(HttpService& service) { return std::make_unique<HttpSession>(service); }

}  // namespace weir
