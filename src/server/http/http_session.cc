// The HTTP/1.1 session, on protocol/http1. See http_session.h.
//
// A request that has arrived as a whole is parsed in place. One that comes in pieces is gathered here, head and body
// together. At most one answer is outstanding: the turn decides it, or it is delayed.
#include "server/http/http_session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/digits.h"
#include "protocol/forward_auth.h"
#include "protocol/query.h"
#include "protocol/request_id.h"
#include "server/http/forward_auth.h"
#include "server/http/http_api.h"
#include "server/http/http_check.h"
#include "server/loop/shed.h"
#include "server/observe/traced_request.h"

namespace weir {
namespace {

constexpr std::size_t kRoomKept = std::size_t{64} << 10;
constexpr std::size_t kLimitsOfDesk = 64;  // compiled limits that a desk caches

enum class After : std::uint8_t { keep, close };

struct Framing {
  After connection = After::keep;
  bool is_http10 = false;
  bool is_head = false;
};

// Probes and the like are not traced.
bool is_traced(std::string_view route) {
  return route.starts_with("/v1/") || route == kForwardAuthPath || route == "/json";
}

std::string_view status_line(int status) {
  switch (status) {
    case 200:
      return "HTTP/1.1 200 OK\r\n";
    case 400:
      return "HTTP/1.1 400 Bad Request\r\n";
    case 401:
      return "HTTP/1.1 401 Unauthorized\r\n";
    case 403:
      return "HTTP/1.1 403 Forbidden\r\n";
    case 404:
      return "HTTP/1.1 404 Not Found\r\n";
    case 405:
      return "HTTP/1.1 405 Method Not Allowed\r\n";
    case 408:
      return "HTTP/1.1 408 Request Timeout\r\n";
    case 409:
      return "HTTP/1.1 409 Conflict\r\n";
    case 413:
      return "HTTP/1.1 413 Payload Too Large\r\n";
    case 415:
      return "HTTP/1.1 415 Unsupported Media Type\r\n";
    case 422:
      return "HTTP/1.1 422 Unprocessable Content\r\n";
    case 429:
      return "HTTP/1.1 429 Too Many Requests\r\n";
    case 431:
      return "HTTP/1.1 431 Request Header Fields Too Large\r\n";
    case 500:
      return "HTTP/1.1 500 Internal Server Error\r\n";
    case 501:
      return "HTTP/1.1 501 Not Implemented\r\n";
    case 503:
      return "HTTP/1.1 503 Service Unavailable\r\n";
    default:
      return {};
  }
}

void append_status(std::string& out, int status) {
  if (const std::string_view line = status_line(status); !line.empty()) {
    out.append(line);
    return;
  }
  append_digits(out.append("HTTP/1.1 "), status);
  out.append(" Denied\r\n");
}

// All answers of a second share one text.
void append_date(std::string& out, HttpService& service, Micros now) {
  const std::int64_t second = now.count() / 1'000'000;
  if (second != service.date_second) {
    service.date_second = second;
    service.date = "Date: " + http_date(now) + "\r\n";
  }
  out.append(service.date);
}

void append_answer(std::string& out, const HttpAnswer& answer, const Framing& framing, HttpService& service,
                   Micros now) {
  append_status(out, answer.status);
  append_date(out, service, now);
  if (!answer.content_type.empty()) out.append("Content-Type: ").append(answer.content_type).append("\r\n");
  append_digits(out.append("Content-Length: "), static_cast<std::int64_t>(answer.body.size()));
  out.append("\r\n").append(answer.fields);
  if (framing.connection == After::close) {
    out.append("Connection: close\r\n");
  } else if (framing.is_http10) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
  if (!framing.is_head) out.append(answer.body);
}

void write_last_words(HttpAnswer& out, GiveUp why) {
  std::string_view detail;
  switch (why) {
    case GiveUp::too_slow:
      return write_problem(out, 408, "Request timeout", "the client did not finish the request in time");
    case GiveUp::no_room:
      detail = "all connections together have reached the memory limit; retry shortly";
      break;
    case GiveUp::too_crowded:
      detail = "too many connections are open; retry shortly";
      break;
    case GiveUp::too_busy:
      detail = kOverloaded;
      break;
  }
  out.add("Retry-After", "1");
  write_problem(out, 503, "Busy", detail);
}

void empty(std::string& text) {
  if (text.capacity() > kRoomKept) {
    text = std::string();
  } else {
    text.clear();
  }
}

// Whether parsing a head again may find more than before, so that a head growing byte by byte is not parsed each
// time.
bool may_end_line(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

class HttpSession final : public Session {
 public:
  HttpSession(HttpService& service, std::string peer) : service_(&service), peer_(std::move(peer)) {}
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  ~HttpSession() override {
    if (!is_holding_) return;
    --service_->all_holds();
    HttpRefusal ignored;
    if (read_head(held_head_, head_, ignored, service_->bounds.http) != HttpRead::done) return;
    give_back_turn({head_.method, head_.target, {}, head_.fields, peer_}, held_rules_, *service_);
  }

  void sit_at(Desk& desk) override { service_ = &static_cast<HttpDesk&>(desk).service; }

  Progress consume(std::string_view input, Turn& turn, std::string& output) override {
    Progress progress;
    progress.close = closes_next_;
    while (progress.consumed < input.size() && !progress.close && !progress.asked && !is_holding()) {
      if (output.size() >= service_->bounds.output_max) {
        progress.full = true;
        break;
      }
      const std::size_t before = progress.consumed;
      const Step step = take_step(input.substr(before), turn, output, progress);
      if (step == Step::waits) break;
    }
    const bool begun = progress.consumed < input.size() || state_ != State::head;
    progress.phase = state_ != State::head ? Phase::body : begun ? Phase::header : Phase::idle;
    return progress;
  }

  bool settle(Turn& turn, std::string& output) override {
    service_->answer.clear();
    take_up();
    answer_pending(work_.pending, turn.answer(place_), turn.now(), *service_);
    forget_request();
    return send(output, turn.now()) == After::close;
  }

  Micros due() const override { return work_.pieces ? Micros{0} : is_holding_ ? due_ : kNever; }
  bool is_holding() const override { return is_holding_ || work_.pieces; }

  void wake(Micros now, std::string& output) override {
    take_up();
    if (work_.pieces && !work_.pieces->go_on(*service_)) send_pieces(output);
    if (is_holding_ && now >= due_) release(output);
  }

  void drain(std::string& output) override {
    is_draining_ = true;
    while (work_.pieces) wake(Micros{0}, output);
    if (is_holding_) release(output);
  }

  void give_up(GiveUp why, std::string& output) override {
    service_->answer.clear();
    write_last_words(service_->answer, why);
    append_answer(output, service_->answer, {After::close}, *service_, service_->limiter.now());
    work_.pieces.reset();
    forget_request();  // the part of the body that was read is useless now
  }

  std::size_t held() const override {
    return gathered_.size() + body_.size() + held_head_.size() + (work_.pieces ? work_.pieces->held() : 0);
  }

 private:
  enum class State : std::uint8_t { head, sized, chunked };
  enum class Step : std::uint8_t { done, waits };

  bool is_leaving() const { return is_draining_ || (service_->leaving != nullptr && service_->leaving->load()); }

  Step take_step(std::string_view rest, Turn& turn, std::string& output, Progress& progress) {
    switch (state_) {
      case State::head:
        return take_head(rest, turn, output, progress);
      case State::sized:
        return take_sized(rest, turn, output, progress);
      case State::chunked:
        break;
    }
    return take_chunks(rest, turn, output, progress);
  }

  Step refuse(const HttpRefusal& refusal, std::string& output, Progress& progress) {
    service_->bounds.refuse(refusal.status == 431   ? Refused::header
                            : refusal.status == 413 ? Refused::body
                                                    : Refused::malformed);
    service_->answer.clear();
    write_problem(service_->answer, refusal.status, refusal.title, refusal.detail);
    append_answer(output, service_->answer, {After::close}, *service_, service_->limiter.now());
    progress.close = true;
    forget_request();
    return Step::done;
  }

  Step take_head(std::string_view rest, Turn& turn, std::string& output, Progress& progress) {
    if (rest.front() == '\r' && (rest.size() == 1 || rest[1] == '\n')) {  // empty lines before a request are ignored
      if (rest.size() == 1) return Step::waits;
      progress.consumed += 2;
      return Step::done;
    }
    const std::size_t looked_at = std::exchange(looked_at_, rest.size());
    if (looked_at > 0 && rest.size() < service_->bounds.http.header_max && !may_end_line(rest.substr(looked_at - 1)))
      return Step::waits;
    HttpRefusal refusal;
    const HttpRead read = read_head(rest, head_, refusal, service_->bounds.http);
    if (read == HttpRead::need_more) return Step::waits;
    looked_at_ = 0;
    if (read == HttpRead::refused) return refuse(refusal, output, progress);
    return begin_request(rest, turn, output, progress);
  }

  // The head is complete; the body begins at its end.
  Step begin_request(std::string_view rest, Turn& turn, std::string& output, Progress& progress) {
    framing_ = {head_.keeps_alive && !is_leaving() ? After::keep : After::close, head_.is_http10,
                head_.method == "HEAD"};
    excuse_body();
    const std::size_t body_bytes_max = body_max(head_.target, service_->bounds);
    if (head_.body == HttpBody::sized && head_.body_size > body_bytes_max) {
      return refuse(body_too_large(body_bytes_max), output, progress);
    }
    if (head_.body == HttpBody::chunked) {
      gathered_.assign(rest.substr(0, head_.size));
      progress.consumed += head_.size;
      state_ = State::chunked;
      chunks_ = {};
      return take_chunks(rest.substr(head_.size), turn, output, progress);
    }
    const std::size_t size = head_.size + (head_.body == HttpBody::sized ? head_.body_size : 0);
    if (rest.size() >= size) {
      progress.consumed += size;
      return answer(rest.substr(head_.size, size - head_.size), turn, output, progress);
    }
    gathered_.assign(rest);
    wanted_ = size;
    progress.consumed += rest.size();
    state_ = State::sized;
    invite_body(output);
    return Step::waits;
  }

  // nginx passes the client's Content-Length on to forward-auth, but no body. Bytes that follow may be a body all the
  // same, so the session reads nothing after this request.
  void excuse_body() {
    if (head_.body != HttpBody::sized || !is_forward_auth(split_target(head_.target).path)) return;
    if (head_.method != "GET" && head_.method != "HEAD") return;
    head_.body = HttpBody::none;
    framing_.connection = After::close;
  }

  // If the client sent Expect: 100-continue, answers it once.
  void invite_body(std::string& output) const {
    if (head_.expects_continue) output.append("HTTP/1.1 100 Continue\r\n\r\n");
  }

  Step take_sized(std::string_view rest, Turn& turn, std::string& output, Progress& progress) {
    const std::size_t taken = std::min(rest.size(), wanted_ - gathered_.size());
    gathered_.append(rest.substr(0, taken));
    progress.consumed += taken;
    if (gathered_.size() < wanted_) return Step::waits;
    return answer_gathered(true, turn, output, progress);
  }

  Step take_chunks(std::string_view rest, Turn& turn, std::string& output, Progress& progress) {
    const bool is_first = body_.empty() && !is_invited_;
    std::size_t consumed = 0;
    HttpRefusal refusal;
    const HttpRead read =
        chunks_.read(rest, body_max_of_gathered(), body_, consumed, refusal, service_->bounds.http.header_max);
    progress.consumed += consumed;
    if (read == HttpRead::refused) return refuse(refusal, output, progress);
    if (read == HttpRead::need_more) {
      if (is_first) invite_body(output);
      is_invited_ = true;
      return Step::waits;
    }
    return answer_gathered(false, turn, output, progress);
  }

  // The views in head_ may be dangling, but the head's text is still there.
  std::size_t body_max_of_gathered() {
    const std::string_view line(gathered_);
    const std::size_t begin = line.find(' ') + 1;
    return body_max(line.substr(begin, line.find(' ', begin) - begin), service_->bounds);
  }

  Step answer_gathered(bool has_body_behind_head, Turn& turn, std::string& output, Progress& progress) {
    HttpRefusal refusal;
    if (read_head(gathered_, head_, refusal, service_->bounds.http) != HttpRead::done)
      return refuse(refusal, output, progress);
    const std::string_view body = has_body_behind_head ? std::string_view(gathered_).substr(head_.size) : body_;
    return answer(body, turn, output, progress);
  }

  Step answer(std::string_view body, Turn& turn, std::string& output, Progress& progress) {
    ++progress.answered;
    const HttpCall call{head_.method, head_.target, body, head_.fields, peer_};
    request_id_ = request_id_or_none(field_of(head_.fields, kRequestIdField));
    if (service_->traces != nullptr) traced_.begin(*service_->traces, field_of(head_.fields, kTraceParentField));
    take_up();
    const bool is_shed = turn.sheds() && shed_http(call, turn, *service_);
    const HttpNext next = is_shed ? HttpNext::answer : answer_call(call, *service_, work_);
    if (traced_.span) begin_span();
    switch (next) {
      case HttpNext::answer:
        break;
      case HttpNext::ask:
        place_ = turn.ask({work_.pending.key, &work_.pending.limit, work_.pending.cost});
        progress.asked = true;
        state_ = State::head;
        return Step::done;
      case HttpNext::hold:
        hold();
        forget_request();
        return Step::done;
      case HttpNext::pieces:  // the first comes with the next turn of the loop: parsing the body was work enough
        forget_request();
        return Step::done;
    }
    progress.close = send(output, service_->now) == After::close;
    forget_request();
    return Step::done;
  }

  // Denials and trace data recorded from now on are of this request.
  void take_up() {
    service_->denials.request_id = request_id_;
    service_->denials.decided = traced_.span ? &traced_.decided : nullptr;
  }

  void begin_span() {
    if (!is_traced(service_->route)) return traced_.span.reset();
    tell_http(*traced_.span, head_.method, service_->route);
    traced_.span->start = service_->now;
  }

  After send(std::string& output, Micros now) {
    if (traced_.span) traced_.end_http(*service_->traces, service_->answer.status, now);
    if (is_leaving()) framing_.connection = After::close;
    if (!request_id_.empty()) service_->answer.add("X-Request-Id", request_id_);
    append_answer(output, service_->answer, framing_, *service_, now);
    empty_large(service_->answer.body);
    return framing_.connection;
  }

  static void empty_large(std::string& text) {
    if (text.capacity() > kOutputMax) text = std::string();
  }

  // Keeps the head as text: if the client leaves, its request is parsed again and refunded.
  void hold() {
    is_holding_ = true;
    ++service_->all_holds();
    due_ = service_->now + work_.delay;
    held_answer_ = service_->answer;
    held_rules_ = service_->by_rules.rules;
    held_head_.assign(head_.method.data(), head_.size);
  }

  void release(std::string& output) {
    is_holding_ = false;
    --service_->all_holds();
    service_->answer = std::move(held_answer_);
    held_answer_ = {};
    held_head_ = std::string();
    held_rules_.reset();
    closes_next_ = send(output, service_->limiter.now()) == After::close;
  }

  void send_pieces(std::string& output) {
    service_->answer.clear();
    service_->answer.body = std::move(work_.pieces->answer());
    work_.pieces.reset();
    closes_next_ = send(output, service_->limiter.now()) == After::close;
  }

  void forget_request() {
    state_ = State::head;
    looked_at_ = 0;
    is_invited_ = false;
    empty(gathered_);
    empty(body_);
  }

  HttpService* service_;  // of the loop, or of its current desk
  std::string peer_;
  State state_ = State::head;
  HttpHead head_;  // its views are valid within one call only
  Framing framing_;
  std::string request_id_;
  TracedRequest traced_;
  HttpWork work_;
  std::size_t place_ = 0;      // in the turn
  std::size_t looked_at_ = 0;  // bytes of an incomplete head that were searched
  std::string gathered_;       // a head and, if it is sized, its body
  std::size_t wanted_ = 0;     // size of gathered_ when complete
  std::string body_;           // a decoded chunked body
  ChunkedBody chunks_;
  bool is_invited_ = false;
  bool is_draining_ = false;
  bool closes_next_ = false;  // a delayed answer had Connection: close
  bool is_holding_ = false;
  Micros due_ = kNever;
  HttpAnswer held_answer_;
  std::string held_head_;
  std::shared_ptr<const Rulebook> held_rules_;  // the rules that charged the delayed request
};

}  // namespace

std::unique_ptr<Session> make_http_session(HttpService& service, std::string peer) {
  return std::make_unique<HttpSession>(service, std::move(peer));
}

std::unique_ptr<Session> make_http_session(Desks& desks, std::string peer) {
  HttpService& home = static_cast<HttpDesk&>(desks.home()).service;
  return make_fiber_session(desks, make_http_session(home, std::move(peer)));
}

HttpDesk::HttpDesk(HttpService& first)
    : Desk(first.limiter, first.counting),
      service{.limiter = first.limiter, .face = first.face, .admin = first.admin, .first = &first} {
  service.limits.set_most(kLimitsOfDesk);
  HttpDesk::renew();
}

void HttpDesk::renew() {
  const HttpService& first = *service.first;
  service.gate = first.gate;
  service.admin = first.admin;
  service.stopping = first.stopping;
  service.leaving = first.leaving;
  service.counting = first.counting;
  service.metrics = first.metrics;
  service.bounds = first.bounds;
  service.denials = first.denials;
  service.traces = first.traces;
  service.origins = first.origins;
  service.rls.envoy = first.rls.envoy;
}

void HttpDesk::write_last_words(GiveUp why, std::string& output) { HttpSession(service, {}).give_up(why, output); }

}  // namespace weir
