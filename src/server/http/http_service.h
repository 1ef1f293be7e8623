// What HTTP routes work with: the call, the listener's configuration, and the state of the request.
//
// There is one HttpService per listener and loop, and one HttpContext per request in flight. The routes of a listener
// are handed in as an HttpApi. Buffers are reused, so that an answer needs no heap allocation. Belongs to a loop and
// its thread. Tested by http_session_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/check_answer.h"
#include "protocol/check_json.h"
#include "protocol/rls_json.h"
#include "server/loop/bounds.h"
#include "server/loop/limit_cache.h"
#include "server/loop/request_context.h"
#include "server/observe/denial_log.h"
#include "server/observe/traces.h"
#include "server/rls/rls_service.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/request.h"

namespace weir::server::http {

inline constexpr std::size_t kChecksAtOnce = 500;  // slow checks decided before other connections continue

// A request; its views are valid until it is answered.
struct HttpCall {
  std::string_view method;
  std::string_view target;
  std::string_view body;
  std::span<const Attribute> fields;
  std::string_view peer;  // the client's address
};

// One check of a batch, after parsing.
struct ReadCheck {
  enum class Kind : std::uint8_t { charge, later, wrong };
  Kind kind = Kind::charge;
  std::size_t place = 0;  // index of its charge, offset of its text in the body, or index of its error
};

class HttpContext;
struct HttpService;
struct HttpWork;

// How the answer to a call comes about.
enum class HttpNext : std::uint8_t {
  answer,  // it is in HttpContext::answer
  ask,     // the turn decides the pending check
  hold,    // delay the answer as HttpWork says
  pieces,  // HttpWork::pieces builds it, one piece in each turn of the loop
};

// Answers a call.
using HttpHandler = HttpNext(const HttpCall&, HttpContext&, HttpWork&);

struct HttpRoute {
  std::string_view path;    // exact, or `/v1/keys/{rule}`: all that begins like this
  std::string_view method;  // GET routes also answer HEAD
  std::string_view allow;
  HttpHandler* answer;
};

// What a listener serves. The admin API derives its own state from it.
struct HttpApi {
  std::span<const HttpRoute> routes{};
  // Called first: answers the call, or returns nothing and lets it pass to its route.
  std::optional<HttpNext> (*guard)(const HttpCall&, std::string_view path, HttpContext&, HttpWork&) = nullptr;
  // Answers a call without a decision, if that is possible (overload.h); null: overload changes nothing.
  bool (*shed)(const HttpCall&, const loop::Turn&, HttpContext&) = nullptr;
  std::string_view help{};  // what to try instead of an unknown path
};
HttpApi& check_api();  // of the HTTP port

// The state of one request in flight: buffers, which are reused from request to request.
class HttpContext final : public loop::RequestContext {
 public:
  // `with` must outlive it.
  explicit HttpContext(HttpService& with, std::size_t limit_slots = loop::LimitCache::kSlotsOfMany);
  void write_last_words(loop::GiveUp why, std::string& output) override;

  HttpService& service;
  loop::LimitCache limits;
  observe::ListenerDenials denials{};  // of the listener, with the id of this request
  Micros now{0};                       // when the request was read
  int refusal = 400;                   // the status if the request is wrong
  std::string_view route{};            // the route that was found; empty: none
  protocol::HttpAnswer answer{};
  Answer by_rules{};
  protocol::CheckItem item{};
  protocol::JsonTexts texts{};
  std::vector<ReadCheck> reads{};
  std::vector<Charge> charges{};
  std::vector<Result<Decision>> decisions{};
  std::vector<Error> errors{};
  protocol::RlsJsonRequest rls_json{};
  rls::RlsService rls;
};

// A listener's configuration, and what all its requests on a loop share.
struct HttpService {
  Limiter& limiter;
  Gate* gate = nullptr;  // null: no rules
  HttpApi* api = &check_api();
  const std::atomic<bool>* stopping = nullptr;  // whether the server is stopping; null: it is not
  const std::atomic<bool>* leaving = nullptr;   // whether to close after an answer, so that clients move on
  Gate* counting = nullptr;                     // counts limits that clients send; null: not counted
  loop::ListenerBounds bounds{};
  observe::ListenerDenials denials{};
  observe::Traces* traces = nullptr;       // null: no tracing
  std::span<const std::string> origins{};  // origins whose pages may call the HTTP port
  envoy::EnvoyInForce* envoy = nullptr;    // null: no Envoy files

  std::size_t holds = 0;  // delayed answers
  std::int64_t date_second = -1;
  std::string date{};                                 // the Date header line of that second
  HttpContext home{*this, loop::LimitCache::kSlots};  // of all requests, where none waits on a fiber
};

// A check that the loop's turn decides. Its key and limit stay here until then.
struct PendingCheck {
  std::string key{};
  Limit limit{};
  std::int64_t cost = 1;
};

// A slow batch of checks, decided in order and in pieces. The whole body has been parsed before.
class ChecksInPieces {
 public:
  ChecksInPieces(std::string_view body, std::size_t key_max);
  ChecksInPieces(const ChecksInPieces&) = delete;
  ChecksInPieces& operator=(const ChecksInPieces&) = delete;

  // Decides the next piece. False if it was the last: the answer is complete.
  bool go_on(HttpContext& context);
  std::string& answer() { return answer_; }
  std::size_t held() const { return body_.size() + answer_.size(); }

 private:
  std::string body_;
  protocol::JsonTexts texts_{};
  protocol::CheckList list_;
  std::string answer_;
  bool is_first_ = true;
};

struct HttpWork {
  PendingCheck pending{};
  Micros delay{0};
  std::unique_ptr<ChecksInPieces> pieces{};
};

}  // namespace weir::server::http
