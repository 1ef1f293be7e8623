// Envoy's rate limit service by the rules: one call is one request, and its descriptors are views of it.
//
//   weir::RlsService service(limiter);
//   auto decided = service.decide(request, &gate);     // of gRPC, or of POST /json
//   if (!decided) return status(decided.error().status, decided.error().message);
//
// All that the descriptors are charged to is taken or nothing is, and a limit that two of them meet is charged once. An
// entry fills the attribute of its name (remote_address is the ip) and can be matched as an entry; so can `domain`. A
// descriptor with a limit of its own is held by that one instead of the rules: a fixed window for its domain,
// entries and limit. One with 0 hits asks only, and denies if a further hit would not pass; then nobody is charged.
// Used again for its room; belongs to one loop and its thread. Tested by rls_service_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "protocol/check_answer.h"
#include "protocol/grpc_message.h"
#include "protocol/rls.h"
#include "server/denial_log.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

struct RlsError {
  GrpcStatus status = GrpcStatus::unknown;
  std::string message;
};

class RlsService {
 public:
  explicit RlsService(Limiter& limiter) : limiter_(limiter) {}  // which outlives it
  RlsService(const RlsService&) = delete;
  RlsService& operator=(const RlsService&) = delete;

  // Without a gate there are no rules. The response is valid until the next call.
  tl::expected<const RlsResponse*, RlsError> decide(const RlsRequest& request, Gate* gate);

  DoorDenials denials{};  // of the door that asks

 private:
  // What becomes of a descriptor.
  struct Part {
    bool is_override = false;  // else by the rules
    bool is_question = false;  // charged nothing
    std::size_t place = 0;     // in overrides_, questions_ or charged_
    std::int64_t cost = 1;     // of a question: 1, the further hit that it asks about
  };
  struct Override {
    std::string key;
    Limit limit;
    LimitAnswer answer;
  };
  // Requests and what the rules answered to them; the answers only grow, to be used again.
  struct Views {
    std::vector<Request> requests;
    std::vector<Answer> answers;
    void clear() { requests.clear(); }
    std::size_t add(const Request& request);
  };
  // The limit that a client is told of, and by which descriptor it was met.
  struct Told {
    const Part* part = nullptr;
    const LimitAnswer* limit = nullptr;  // null: none, but for what it is denied all the same
    Micros retry_after{0};
    bool is_over = false;
  };
  using Checked = tl::expected<void, RlsError>;

  Checked prepare(const RlsRequest& request);
  Checked prepare_part(const RlsRequest& request, const RlsDescriptor& descriptor);
  Checked prepare_override(const RlsRequest& request, const RlsDescriptor& descriptor, std::size_t& place);

  Result<void> answer_all();
  Result<bool> answer_questions();
  Result<void> look(const Part& part);
  Result<void> charge();
  Result<void> charge_overrides();

  const Views& views_of(const Part& part) const { return part.is_question ? questions_ : charged_; }
  const Answer& answer_of(const Part& part) const { return views_of(part).answers[part.place]; }
  Told told_of(const Part& part) const;
  void respond();
  void add_status(const Told& told);
  void tell_client(const Told& told, Micros now);
  void add_fields();
  const AnswerStyle& style_of(const Told& told) const;
  void tell_denial(const Told& told, Micros now);
  void note(const Told& told, Micros now) const;

  Limiter& limiter_;
  Gate* gate_ = nullptr;  // of this call
  std::vector<Part> parts_;
  Views charged_, questions_;
  std::deque<Override> overrides_;  // stays where it is, and only grows
  std::size_t overrides_used_ = 0;
  std::vector<Charge> also_;  // of the overrides that are charged
  std::vector<Decision> decisions_;
  RlsResponse response_;
  std::vector<LimitAnswer> limits_;  // all that were met, each name once
  std::string fields_;
  HttpAnswer http_;
};

}  // namespace weir
