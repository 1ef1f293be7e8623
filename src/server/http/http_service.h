// The context of the HTTP routes: their configuration, and the buffers of the current request.
//
// There is one HttpService per loop and its thread or, with fibers, one per request in flight (HttpDesk). All share
// the Limiter and the Gate. Buffers live here and are reused from request to request, so that an answer needs no heap
// allocation. Tested by http_session_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/check_answer.h"
#include "protocol/check_json.h"
#include "protocol/rls_json.h"
#include "server/http/inline_limits.h"
#include "server/loop/bounds.h"
#include "server/loop/desk.h"
#include "server/observe/denial_log.h"
#include "server/observe/metrics.h"
#include "server/observe/traces.h"
#include "server/rls/rls_service.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/request.h"

namespace weir {

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

struct AdminService;  // admin_service.h

// The set of routes that a port has.
enum class HttpFace : std::uint8_t { checks, admin };

struct HttpService {
  Limiter& limiter;
  Gate* gate = nullptr;  // null: no rules
  HttpFace face = HttpFace::checks;
  AdminService* admin = nullptr;                // for the admin API
  const std::atomic<bool>* stopping = nullptr;  // whether the server is stopping; null: it is not
  const std::atomic<bool>* leaving = nullptr;   // whether to close after an answer, so that clients move on
  Gate* counting = nullptr;                     // counts limits that clients send; null: not counted
  const MetricsSources* metrics = nullptr;      // what /metrics shows; null: nothing
  DoorBounds bounds{};
  DoorDenials denials{};
  Traces* traces = nullptr;                // null: no tracing
  std::span<const std::string> origins{};  // origins whose pages may call the HTTP port
  InlineLimits limits{};

  Micros now{0};             // when the current request was read
  int refusal = 400;         // the status if the request is wrong
  std::string_view route{};  // the route that was found; empty: none
  // Buffers for one request.
  HttpAnswer answer{};
  Answer by_rules{};
  CheckItem item{};
  JsonTexts texts{};
  std::vector<ReadCheck> reads{};
  std::vector<Charge> charges{};
  std::vector<Result<Decision>> decisions{};
  std::vector<Error> errors{};
  RlsJsonRequest rls_json{};
  RlsService rls{limiter};

  // Counted for all connections of the loop; a desk uses the count of `first`.
  HttpService* first = nullptr;
  std::size_t holds = 0;  // delayed answers
  std::size_t& all_holds() { return first == nullptr ? holds : first->holds; }
  std::int64_t date_second = -1;
  std::string date{};  // the Date header line of that second
};

// The buffers of one more request in flight, beside those of the loop.
class HttpDesk final : public Desk {
 public:
  explicit HttpDesk(HttpService& first);  // `first` must outlive it
  void renew() override;
  void write_last_words(GiveUp why, std::string& output) override;

  HttpService service;
};

// A check that the loop's turn decides. Its key and limit stay here until then.
struct PendingCheck {
  std::string key{};
  Limit limit{};
  std::int64_t cost = 1;
};

// How the answer to a call comes about.
enum class HttpNext : std::uint8_t {
  answer,  // it is in HttpService::answer
  ask,     // the turn decides the pending check
  hold,    // delay the answer as HttpWork says
  pieces,  // HttpWork::pieces builds it, one piece in each turn of the loop
};

// A slow batch of checks, decided in order and in pieces. The whole body has been parsed before.
class ChecksInPieces {
 public:
  ChecksInPieces(std::string_view body, std::size_t key_max);
  ChecksInPieces(const ChecksInPieces&) = delete;
  ChecksInPieces& operator=(const ChecksInPieces&) = delete;

  // Decides the next piece. False if it was the last: the answer is complete.
  bool go_on(HttpService& service);
  std::string& answer() { return answer_; }
  std::size_t held() const { return body_.size() + answer_.size(); }

 private:
  std::string body_;
  JsonTexts texts_{};
  CheckList list_;
  std::string answer_;
  bool is_first_ = true;
};

struct HttpWork {
  PendingCheck pending{};
  Micros delay{0};
  std::unique_ptr<ChecksInPieces> pieces{};
};

}  // namespace weir
