// What the routes of the HTTP port are given and work with.
//
// One HttpService for a loop and its thread, or, on fibers, one for each request that is under way (HttpDesk); the
// Limiter and the Gate in it are shared by all. What is used again from one request to the next lies here, so that an
// answer takes no memory from the heap. Tested by http_session_test.cc.
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
#include "server/bounds.h"
#include "server/denial_log.h"
#include "server/desk.h"
#include "server/inline_limits.h"
#include "server/metrics.h"
#include "server/rls_service.h"
#include "server/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/request.h"

namespace weir {

inline constexpr std::size_t kChecksAtOnce = 500;  // of those that take long, before others have their turn

// A request; views, good until it is answered.
struct HttpCall {
  std::string_view method;
  std::string_view target;
  std::string_view body;
  std::span<const Attribute> fields;
  std::string_view peer;  // its address
};

// One of many checks, as far as it was read.
struct ReadCheck {
  enum class Kind : std::uint8_t { charge, later, wrong };
  Kind kind = Kind::charge;
  std::size_t place = 0;  // of its charge, of its text in the body, of its error
};

struct AdminService;  // admin_service.h

// The routes that a port has.
enum class HttpFace : std::uint8_t { checks, admin };

struct HttpService {
  Limiter& limiter;
  Gate* gate = nullptr;  // null: there are no rules
  HttpFace face = HttpFace::checks;
  AdminService* admin = nullptr;                // of the admin port
  const std::atomic<bool>* stopping = nullptr;  // whether the server is; null: it is not
  const std::atomic<bool>* leaving = nullptr;   // whether an answer is the last of its connection, so that it moves on
  Gate* counting = nullptr;                     // counts limits that clients bring along; null: nobody does
  const MetricsSources* metrics = nullptr;      // what the admin port shows; null: nothing
  DoorBounds bounds{};
  DoorDenials denials{};
  Traces* traces = nullptr;                // null: nothing is traced
  std::span<const std::string> origins{};  // whose pages may call the port that checks
  InlineLimits limits{};

  Micros now{0};             // when the request at hand was read
  int refusal = 400;         // the status of what is wrong with it
  std::string_view route{};  // where it led to; empty: nowhere
  // Room for one request.
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

  // Of all connections of the loop; of a desk beside it, those of `first`.
  HttpService* first = nullptr;
  std::size_t holds = 0;  // answers that are held back
  std::size_t& all_holds() { return first == nullptr ? holds : first->holds; }
  std::int64_t date_second = -1;
  std::string date{};  // of that second, as a line of a header
};

// A room for one more request, beside that of the loop.
class HttpDesk final : public Desk {
 public:
  explicit HttpDesk(HttpService& first);  // which outlives it
  void renew() override;
  void write_last_words(GiveUp why, std::string& output) override;

  HttpService service;
};

// A check that the loop's turn decides: its key and limit stay here until then.
struct PendingCheck {
  std::string key{};
  Limit limit{};
  std::int64_t cost = 1;
};

// What becomes of a call.
enum class HttpNext : std::uint8_t {
  answer,  // it is in HttpService::answer
  ask,     // the turn, for the pending check
  hold,    // the answer, for as long as HttpWork says
  pieces,  // HttpWork::pieces makes it, one piece in each turn of the loop
};

// Many checks that take long, decided in their order and in pieces. It was found before that the body can be read.
class ChecksInPieces {
 public:
  ChecksInPieces(std::string_view body, std::size_t key_max);
  ChecksInPieces(const ChecksInPieces&) = delete;
  ChecksInPieces& operator=(const ChecksInPieces&) = delete;

  // Decides the next ones. False if that was all: then the answer is complete.
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
