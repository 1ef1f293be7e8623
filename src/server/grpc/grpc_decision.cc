// Copies a call's request, decides it on a fiber and reports the result. See grpc_decision.h.
#include "server/grpc/grpc_decision.h"

#include <exception>

#include "server/grpc/grpc_session.h"
#include "server/observe/traced_request.h"

namespace weir::server::grpc {

GrpcDecision::GrpcDecision(GrpcService& service)
    : service_(service), method_(service.limiter, service.methods.rate_limit().gate()) {}

GrpcDecision::Started GrpcDecision::start(GrpcDecisionOwner& owner, GrpcCall& call, std::string_view message) {
  owner_ = &owner;
  call_ = &call;
  message_.assign(message);
  request_id_ = call.head.request_id;
  trace_ = call.head.trace;
  out_.clear();
  outcome_ = {};
  has_ended_ = false;
  is_at_once_ = true;
  const bool has_begun = service_.tasks->start(*this);
  is_at_once_ = false;
  if (!has_begun) return Started::not_at_all;
  return has_ended_ ? Started::ended : Started::waits;
}

void GrpcDecision::decide() {
  observe::ListenerDenials& denials = method_.denials();
  denials = service_.methods.denials();
  denials.request_id = request_id_;
  method_.use_envoy(service_.methods.rate_limit().envoy());
  const auto run = [this] { return method_.run(message_, out_); };
  outcome_ = service_.traces == nullptr ? run()
                                        : observe::trace_call(*service_.traces, trace_, denials, service_.limiter, run);
}

void GrpcDecision::run() noexcept {
  try {
    decide();
  } catch (const std::exception&) {
    out_.clear();
    outcome_ = {protocol::GrpcStatus::resource_exhausted, "out of memory"};  // short enough to need no allocation
  }
  has_ended_ = true;
  if (is_at_once_) return;
  if (call_ != nullptr) return owner_->on_decided(*this);
  service_.decisions.give(std::unique_ptr<GrpcDecision>(this));
}

std::unique_ptr<GrpcDecision> GrpcDecisions::take() {
  if (free_.empty()) {
    free_.reserve(kKept);
    return std::make_unique<GrpcDecision>(service_);
  }
  std::unique_ptr<GrpcDecision> decision = std::move(free_.back());
  free_.pop_back();
  return decision;
}

void GrpcDecisions::give(std::unique_ptr<GrpcDecision> ended) noexcept {
  if (free_.size() >= kKept) return;
  if (ended->message_.capacity() + ended->out_.capacity() <= kCapacityKept) free_.push_back(std::move(ended));
}

}  // namespace weir::server::grpc
