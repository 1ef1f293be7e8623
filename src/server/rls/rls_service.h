// Envoy's rate limit service, decided by the rules: one call is one request, and its descriptors are views of it.
//
//   weir::server::rls::RlsService service(limiter);
//   auto decided = service.decide(request, &gate);     // for gRPC and for POST /json
//   if (!decided) return status(decided.error().status, decided.error().message);
//
// Either all limits of all descriptors are charged, or none is. A rule that matches two descriptors is charged once.
// An entry sets the attribute of its name (remote_address is the ip) and can be matched as an entry; so can `domain`.
// A descriptor with its own limit uses that limit instead of the rules: a fixed window for its domain, entries and
// limit. A descriptor with 0 hits is a query: it is denied if one more hit would not pass, and then nothing is
// charged. If Envoy's files have a limit for a descriptor, that limit applies, too. It is part of the same charge,
// except for shadow limits, and for a used-up quota while another quota has permits left. Envoy's files may count
// denied requests. Reused for its buffers; belongs to one loop and its thread. Tested by rls_service_test.cc and
// rls_envoy_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "envoy/envoy_in_force.h"
#include "protocol/check_answer.h"
#include "protocol/grpc_message.h"
#include "protocol/rls.h"
#include "server/loop/bounds.h"
#include "server/observe/denial_log.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::server::rls {

// The response to a request that was shed under overload.
const protocol::RlsResponse& rls_overload_response(loop::OnOverload what);

struct RlsError {
  protocol::GrpcStatus status = protocol::GrpcStatus::unknown;
  std::string message;
};

class RlsService {
 public:
  explicit RlsService(Limiter& limiter) : limiter_(limiter) {}  // must outlive it
  RlsService(const RlsService&) = delete;
  RlsService& operator=(const RlsService&) = delete;

  // Without a gate there are no rules. The response is valid until the next call.
  tl::expected<const protocol::RlsResponse*, RlsError> decide(const protocol::RlsRequest& request, Gate* gate);

  observe::ListenerDenials denials{};    // of the listener that calls
  envoy::EnvoyInForce* envoy = nullptr;  // must outlive it, too; null: no Envoy files

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  // How one descriptor is decided.
  struct Part {
    bool is_by_rules = true;    // false if it has its own limit
    bool is_query = false;      // a query: charged nothing
    bool is_unlimited = false;  // unlimited by Envoy's files
    std::size_t place = kNone;  // index in queries_ or charged_, if decided by the rules
    std::size_t own = kNone;    // index in owns_
    std::int64_t cost = 1;      // of a query: 1, the further hit it asks about
  };
  enum class Hold : std::uint8_t { enforced, quota, shadow };
  // A limit beside the rules: the descriptor's own, or the one in Envoy's files.
  struct Own {
    envoy::EnvoyFound found;  // the key; without a rule, it is the descriptor's own limit
    Limit inline_limit;
    protocol::RlsLimit said;  // the limit as answers repeat it
    Hold hold = Hold::enforced;
    LimitAnswer answer;
    bool is_over = false;
    std::size_t charge = kNone;   // its index in also_
    std::int64_t cost_up_to = 0;  // of this limit and all earlier ones with the same key
  };
  // Requests and their answers by the rules. The answers only grow, for reuse.
  struct Views {
    std::vector<Request> requests;
    std::vector<Answer> answers;
    void clear() { requests.clear(); }
    std::size_t add(const Request& request);
  };
  // A limit, or a rule without one, with a result for a descriptor.
  struct Report {
    const Part* part = nullptr;
    const Own* own = nullptr;            // null: it is from the rules
    const LimitAnswer* limit = nullptr;  // null: no limit, but it may be denied all the same
    Micros retry_after{0};
    bool is_over = false;
  };
  using Checked = tl::expected<void, RlsError>;

  // rls_service.cc: from descriptors to parts.
  Checked prepare(const protocol::RlsRequest& request);
  Checked prepare_part(const protocol::RlsRequest& request, const protocol::RlsDescriptor& descriptor);
  Checked prepare_inline_limit(const protocol::RlsRequest& request, const protocol::RlsDescriptor& descriptor,
                               Part& part);
  void prepare_found(const protocol::RlsRequest& request, const protocol::RlsDescriptor& descriptor, Part& part);
  void drop_replaced();
  std::size_t add_own();

  // rls_charge.cc: from parts to answers.
  static Charge charge_of(const Own& own, std::int64_t cost);
  Result<void> answer_all();
  Result<void> look(const Part& part);
  Result<void> look_at_rules(const Part& part);
  Result<void> look_at_own(const Part& part);
  bool is_refused() const;
  bool is_quota_used_up() const;
  Result<void> charge();
  void collect_charges();
  Result<bool> charge_event();
  void take_decisions(bool is_charged);
  bool may_skip_used_up_quotas() const;
  Result<void> charge_shadow(const Part& part, Own& own);
  Result<void> charge_denied();

  // rls_response.cc: from answers to the response.
  const Views& views_of(const Part& part) const { return part.is_query ? queries_ : charged_; }
  const Answer& answer_of(const Part& part) const { return views_of(part).answers[part.place]; }
  Own* own_of(const Part& part) { return part.own == kNone ? nullptr : &owns_[part.own]; }
  const Own* own_of(const Part& part) const { return part.own == kNone ? nullptr : &owns_[part.own]; }
  Report report_by_rules(const Part& part) const;
  Report report_by_own(const Part& part) const;
  void respond();
  void add_status(const Part& part, Micros now);
  Report binding() const;
  void describe_limit(const Report& report, Micros now);
  void add_fields();
  const AnswerStyle& style_of(const Report& report) const;
  void describe_denial(const Report& report, Micros now);
  void note(const Report& report, Micros now) const;
  void count(const Part& part, const Own& own);

  Limiter& limiter_;
  Gate* gate_ = nullptr;  // of this call
  std::shared_ptr<const envoy::EnvoyView> view_;
  std::uint64_t view_version_ = 0;
  bool obeys_inline_limits_ = true;  // obey limits of descriptors
  bool is_known_ = false;            // Envoy's files have the domain, and they are in effect
  std::vector<std::string_view> replaced_;

  std::vector<Part> parts_;
  Views charged_, queries_;
  std::deque<Own> owns_;  // stable addresses; only grows
  std::size_t owns_used_ = 0;
  std::vector<Charge> also_;  // each key once
  std::vector<Decision> decisions_;
  bool is_denied_ = false;
  protocol::RlsResponse response_;
  std::vector<LimitAnswer> limits_;  // all limits found, each name once
  std::string fields_;
  protocol::HttpAnswer http_;
};

}  // namespace weir::server::rls
