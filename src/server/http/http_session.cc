// The HTTP/1.1 session, on protocol/http1. See http_session.h.
//
// A request that has arrived completely is parsed in place. If it comes in pieces, the session gathers head and body
// first. At most one answer is outstanding: the turn decides it, or it is delayed.
#include "server/http/http_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "base/time_text.h"
#include "protocol/forward_auth.h"
#include "protocol/query.h"
#include "protocol/request_id.h"
#include "server/http/http_routes.h"
#include "server/observe/traced_request.h"

namespace weir::server::http {
namespace {

constexpr std::size_t kTextKept = std::size_t{64} << 10;

enum class After : std::uint8_t { keep, close };

struct Framing {
  After connection = After::keep;
  bool is_http10 = false;
  bool is_head = false;
};

// Health checks and documentation are not traced.
bool is_traced(std::string_view route) {
  return route.starts_with("/v1/") || route == protocol::kForwardAuthPath || route == "/json";
}

struct StatusLine {
  int status;
  std::string_view line;
};
constexpr auto kStatusLines = std::to_array<StatusLine>({
    {200, "HTTP/1.1 200 OK\r\n"},
    {429, "HTTP/1.1 429 Too Many Requests\r\n"},
    {400, "HTTP/1.1 400 Bad Request\r\n"},
    {401, "HTTP/1.1 401 Unauthorized\r\n"},
    {403, "HTTP/1.1 403 Forbidden\r\n"},
    {404, "HTTP/1.1 404 Not Found\r\n"},
    {405, "HTTP/1.1 405 Method Not Allowed\r\n"},
    {408, "HTTP/1.1 408 Request Timeout\r\n"},
    {409, "HTTP/1.1 409 Conflict\r\n"},
    {413, "HTTP/1.1 413 Payload Too Large\r\n"},
    {415, "HTTP/1.1 415 Unsupported Media Type\r\n"},
    {422, "HTTP/1.1 422 Unprocessable Content\r\n"},
    {431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
    {500, "HTTP/1.1 500 Internal Server Error\r\n"},
    {501, "HTTP/1.1 501 Not Implemented\r\n"},
    {503, "HTTP/1.1 503 Service Unavailable\r\n"},
});

void append_status(std::string& out, int status) {
  const auto known = std::ranges::find(kStatusLines, status, &StatusLine::status);
  if (known != kStatusLines.end()) {
    out.append(known->line);
    return;
  }
  base::append_digits(out.append("HTTP/1.1 "), status);
  out.append(" Denied\r\n");
}

// All answers of a second share one text.
void append_date(std::string& out, HttpService& service, Micros now) {
  const std::int64_t second = now.count() / 1'000'000;
  if (second != service.date_second) {
    service.date_second = second;
    service.date = "Date: " + base::http_date(now) + "\r\n";
  }
  out.append(service.date);
}

void append_answer(std::string& out, const protocol::HttpAnswer& answer, const Framing& framing, HttpContext& context,
                   Micros now) {
  append_status(out, answer.status);
  append_date(out, context.service, now);
  if (!answer.content_type.empty()) out.append("Content-Type: ").append(answer.content_type).append("\r\n");
  char length[48];
  base::Pen pen(length);
  pen.put("Content-Length: ");
  pen.put_digits(static_cast<std::int64_t>(answer.body.size()));
  pen.put("\r\n");
  out.append(length, static_cast<std::size_t>(pen.at() - length)).append(answer.fields);
  if (framing.connection == After::close) {
    out.append("Connection: close\r\n");
  } else if (framing.is_http10) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
  if (!framing.is_head) out.append(answer.body);
}

// Whether parsing a head again may find more than before, so that a head growing byte by byte is not parsed each
// time.
bool may_end_line(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

class HttpSession final : public loop::Session {
 public:
  HttpSession(HttpContext& context, std::string peer) : context_(&context), peer_(std::move(peer)) {}
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  ~HttpSession() override {
    if (!is_holding_) return;
    --context_->service.holds;
    protocol::HttpRefusal ignored;
    if (protocol::read_head(held_head_, head_, ignored, context_->service.bounds.http) != protocol::HttpRead::done)
      return;
    refund_held_request({head_.method, head_.target, {}, head_.fields, peer_}, held_rules_, *context_);
  }

  void use_context(loop::RequestContext& context) override { context_ = &static_cast<HttpContext&>(context); }

  loop::Progress consume(std::string_view input, loop::Turn& turn, std::string& output) override {
    loop::Progress progress;
    progress.close = closes_next_;
    while (progress.consumed < input.size() && !progress.close && !progress.asked && !is_holding()) {
      if (output.size() >= context_->service.bounds.output_max) {
        progress.full = true;
        break;
      }
      if (take_step(input.substr(progress.consumed), turn, output, progress) == Step::waits) break;
    }
    const bool begun = progress.consumed < input.size() || state_ != State::head;
    progress.phase = state_ != State::head ? loop::Phase::body : begun ? loop::Phase::header : loop::Phase::idle;
    return progress;
  }

  bool settle(loop::Turn& turn, std::string& output) override {
    context_->answer.clear();
    record_for_request();
    answer_pending(work_.pending, turn.answer(place_), turn.now(), *context_);
    reset_request();
    return send(output, turn.now()) == After::close;
  }

  Micros due() const override { return work_.pieces ? Micros{0} : is_holding_ ? due_ : kNever; }
  bool is_holding() const override { return is_holding_ || work_.pieces; }

  void wake(Micros now, std::string& output) override {
    record_for_request();
    if (work_.pieces && !work_.pieces->go_on(*context_)) send_pieces(output);
    if (is_holding_ && now >= due_) release(output);
  }

  void drain(std::string& output) override {
    is_draining_ = true;
    while (work_.pieces) wake(Micros{0}, output);
    if (is_holding_) release(output);
  }

  void give_up(loop::GiveUp why, std::string& output) override {
    const bool is_slow = why == loop::GiveUp::too_slow;
    protocol::HttpAnswer& answer = context_->answer;
    answer.clear();
    if (!is_slow) answer.add("Retry-After", "1");
    protocol::write_problem(answer, is_slow ? 408 : 503, is_slow ? "Request timeout" : "Busy", loop::reason_of(why));
    append_answer(output, answer, {After::close}, *context_, context_->service.limiter.now());
    work_.pieces.reset();
    reset_request();  // the part of the body that was read is useless now
  }

  std::size_t held() const override {
    return gathered_.size() + body_.size() + held_head_.size() + (work_.pieces ? work_.pieces->held() : 0);
  }

 private:
  enum class State : std::uint8_t { head, sized, chunked };
  enum class Step : std::uint8_t { done, waits };

  bool is_leaving() const {
    return is_draining_ || (context_->service.leaving != nullptr && context_->service.leaving->load());
  }

  Step take_step(std::string_view rest, loop::Turn& turn, std::string& output, loop::Progress& progress) {
    if (state_ == State::head) return take_head(rest, turn, output, progress);
    if (state_ == State::sized) return take_sized(rest, turn, output, progress);
    return take_chunks(rest, turn, output, progress);
  }

  Step refuse(const protocol::HttpRefusal& refusal, std::string& output, loop::Progress& progress) {
    context_->service.bounds.refuse(refusal.status == 431   ? loop::Refused::header
                                    : refusal.status == 413 ? loop::Refused::body
                                                            : loop::Refused::malformed);
    context_->answer.clear();
    protocol::write_problem(context_->answer, refusal.status, refusal.title, refusal.detail);
    append_answer(output, context_->answer, {After::close}, *context_, context_->service.limiter.now());
    progress.close = true;
    reset_request();
    return Step::done;
  }

  Step take_head(std::string_view rest, loop::Turn& turn, std::string& output, loop::Progress& progress) {
    if (rest.front() == '\r' && (rest.size() == 1 || rest[1] == '\n')) {  // empty lines before a request are ignored
      if (rest.size() == 1) return Step::waits;
      progress.consumed += 2;
      return Step::done;
    }
    const std::size_t looked_at = std::exchange(looked_at_, rest.size());
    if (looked_at > 0 && rest.size() < context_->service.bounds.http.header_max &&
        !may_end_line(rest.substr(looked_at - 1)))
      return Step::waits;
    protocol::HttpRefusal refusal;
    const protocol::HttpRead read = protocol::read_head(rest, head_, refusal, context_->service.bounds.http);
    if (read == protocol::HttpRead::need_more) return Step::waits;
    looked_at_ = 0;
    if (read == protocol::HttpRead::refused) return refuse(refusal, output, progress);
    return begin_request(rest, turn, output, progress);
  }

  // The head is complete; the body begins at its end.
  Step begin_request(std::string_view rest, loop::Turn& turn, std::string& output, loop::Progress& progress) {
    framing_ = {head_.keeps_alive && !is_leaving() ? After::keep : After::close, head_.is_http10,
                head_.method == "HEAD"};
    ignore_body();
    body_max_ = body_max(head_.target, context_->service.bounds);
    if (head_.body == protocol::HttpBody::sized && head_.body_size > body_max_) {
      return refuse(protocol::body_too_large(body_max_), output, progress);
    }
    if (head_.body == protocol::HttpBody::chunked) {
      gathered_.assign(rest.substr(0, head_.size));
      progress.consumed += head_.size;
      state_ = State::chunked;
      chunks_ = {};
      return take_chunks(rest.substr(head_.size), turn, output, progress);
    }
    const std::size_t size = head_.size + (head_.body == protocol::HttpBody::sized ? head_.body_size : 0);
    if (rest.size() >= size) {
      progress.consumed += size;
      return answer(rest.substr(head_.size, size - head_.size), turn, output, progress);
    }
    gathered_.assign(rest);
    wanted_ = size;
    progress.consumed += rest.size();
    state_ = State::sized;
    send_continue(output);
    return Step::waits;
  }

  // nginx passes the client's Content-Length on to forward-auth, but no body. Bytes that follow may be a body all the
  // same, so the session reads nothing after this request.
  void ignore_body() {
    if (head_.body != protocol::HttpBody::sized ||
        !protocol::is_forward_auth(protocol::split_target(head_.target).path))
      return;
    if (head_.method != "GET" && head_.method != "HEAD") return;
    head_.body = protocol::HttpBody::none;
    framing_.connection = After::close;
  }

  // If the client sent Expect: 100-continue, answers it once.
  void send_continue(std::string& output) const {
    if (head_.expects_continue) output.append("HTTP/1.1 100 Continue\r\n\r\n");
  }

  Step take_sized(std::string_view rest, loop::Turn& turn, std::string& output, loop::Progress& progress) {
    const std::size_t taken = std::min(rest.size(), wanted_ - gathered_.size());
    gathered_.append(rest.substr(0, taken));
    progress.consumed += taken;
    if (gathered_.size() < wanted_) return Step::waits;
    return answer_gathered(true, turn, output, progress);
  }

  Step take_chunks(std::string_view rest, loop::Turn& turn, std::string& output, loop::Progress& progress) {
    const bool is_first = body_.empty() && !is_invited_;
    std::size_t consumed = 0;
    protocol::HttpRefusal refusal;
    const protocol::HttpRead read =
        chunks_.read(rest, body_max_, body_, consumed, refusal, context_->service.bounds.http.header_max);
    progress.consumed += consumed;
    if (read == protocol::HttpRead::refused) return refuse(refusal, output, progress);
    if (read == protocol::HttpRead::need_more) {
      if (is_first) send_continue(output);
      is_invited_ = true;
      return Step::waits;
    }
    return answer_gathered(false, turn, output, progress);
  }

  Step answer_gathered(bool has_body_behind_head, loop::Turn& turn, std::string& output, loop::Progress& progress) {
    protocol::HttpRefusal refusal;
    if (protocol::read_head(gathered_, head_, refusal, context_->service.bounds.http) != protocol::HttpRead::done)
      return refuse(refusal, output, progress);
    const std::string_view body = has_body_behind_head ? std::string_view(gathered_).substr(head_.size) : body_;
    return answer(body, turn, output, progress);
  }

  Step answer(std::string_view body, loop::Turn& turn, std::string& output, loop::Progress& progress) {
    ++progress.answered;
    const HttpCall call{head_.method, head_.target, body, head_.fields, peer_};
    request_id_ = protocol::request_id_or_none(protocol::field_of(head_.fields, protocol::kRequestIdField));
    if (context_->service.traces != nullptr)
      traced_.begin(*context_->service.traces, protocol::field_of(head_.fields, protocol::kTraceParentField));
    record_for_request();
    const HttpApi& api = *context_->service.api;
    const bool is_shed = turn.sheds() && api.shed != nullptr && api.shed(call, turn, *context_);
    const HttpNext next = is_shed ? HttpNext::answer : answer_call(call, *context_, work_);
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
        reset_request();
        return Step::done;
      case HttpNext::pieces:  // from the loop's next turn on: parsing took long
        reset_request();
        return Step::done;
    }
    progress.close = send(output, context_->now) == After::close;
    reset_request();
    return Step::done;
  }

  // Denials and trace data recorded from now on are of this request.
  void record_for_request() {
    context_->denials = context_->service.denials;
    context_->denials.request_id = request_id_;
    context_->denials.decided = traced_.span ? &traced_.decided : nullptr;
  }

  void begin_span() {
    if (!is_traced(context_->route)) return traced_.span.reset();
    observe::describe_http(*traced_.span, head_.method, context_->route);
    traced_.span->start = context_->now;
  }

  After send(std::string& output, Micros now) {
    if (traced_.span) traced_.end_http(*context_->service.traces, context_->answer.status, now);
    if (is_leaving()) framing_.connection = After::close;
    if (!request_id_.empty()) context_->answer.add("X-Request-Id", request_id_);
    append_answer(output, context_->answer, framing_, *context_, now);
    base::empty_out(context_->answer.body, loop::kOutputMax);
    return framing_.connection;
  }

  // Keeps the head as text: if the client leaves, its request is parsed again and refunded.
  void hold() {
    is_holding_ = true;
    ++context_->service.holds;
    due_ = context_->now + work_.delay;
    held_answer_ = context_->answer;
    held_rules_ = context_->by_rules.rules;
    held_head_.assign(head_.method.data(), head_.size);
  }

  void release(std::string& output) {
    is_holding_ = false;
    --context_->service.holds;
    context_->answer = std::exchange(held_answer_, {});
    base::free_memory(held_head_);
    held_rules_.reset();
    closes_next_ = send(output, context_->service.limiter.now()) == After::close;
  }

  void send_pieces(std::string& output) {
    context_->answer.clear();
    context_->answer.body = std::move(work_.pieces->answer());
    work_.pieces.reset();
    closes_next_ = send(output, context_->service.limiter.now()) == After::close;
  }

  void reset_request() {
    state_ = State::head;
    looked_at_ = 0;
    is_invited_ = false;
    base::empty_out(gathered_, kTextKept);
    base::empty_out(body_, kTextKept);
  }

  HttpContext* context_;  // of the loop, or of its current fiber
  std::string peer_;
  State state_ = State::head;
  protocol::HttpHead head_;  // its views are valid within one call only
  Framing framing_;
  std::string request_id_;
  observe::TracedRequest traced_;
  HttpWork work_;
  std::size_t place_ = 0;      // in the turn
  std::size_t looked_at_ = 0;  // bytes of an incomplete head that were searched
  std::string gathered_;       // a head and, if it is sized, its body
  std::size_t wanted_ = 0;     // size of gathered_ when complete
  std::size_t body_max_ = 0;   // of the current request
  std::string body_;           // a decoded chunked body
  protocol::ChunkedBody chunks_;
  bool is_invited_ = false;
  bool is_draining_ = false;
  bool closes_next_ = false;  // a delayed answer had Connection: close
  bool is_holding_ = false;
  Micros due_ = kNever;
  protocol::HttpAnswer held_answer_;
  std::string held_head_;
  std::shared_ptr<const policy::Rulebook> held_rules_;  // the rules that charged the delayed request
};

}  // namespace

std::unique_ptr<loop::Session> make_http_session(HttpService& service, std::string peer) {
  return std::make_unique<HttpSession>(service.home, std::move(peer));
}

std::unique_ptr<loop::Session> make_http_session(loop::ContextPool& pool, std::string peer) {
  auto& home = static_cast<HttpContext&>(pool.home());
  return loop::make_fiber_session(pool, std::make_unique<HttpSession>(home, std::move(peer)));
}

HttpContext::HttpContext(HttpService& with, std::size_t limit_slots)
    : loop::RequestContext(with.limiter, with.counting), service(with), limits(limit_slots), rls(with.limiter) {}

void HttpContext::write_last_words(loop::GiveUp why, std::string& output) {
  HttpSession(*this, {}).give_up(why, output);
}

}  // namespace weir::server::http
