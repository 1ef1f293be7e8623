// A call of the rate limit service while a fiber decides it, independent of its stream.
//
// Many calls share a connection, so each has a fiber. The decision copies what it needs of its call. While the fiber
// waits, the stream may be reset, its deadline may pass or the connection may end; the result is then dropped
// (drop_result()). Finished decisions are reused together with their buffers. Belongs to one loop and its thread.
// Tested by grpc_fiber_test.cc.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/grpc/grpc_call.h"
#include "server/grpc/grpc_methods.h"
#include "server/loop/fiber_task.h"

namespace weir::server::grpc {

struct GrpcService;
class GrpcDecision;

// Receives a decision that has ended, unless it ended within start().
class GrpcDecisionOwner {
 public:
  virtual void on_decided(GrpcDecision& decision) = 0;

 protected:
  ~GrpcDecisionOwner() = default;
};

class GrpcDecision final : public loop::FiberTask {
 public:
  enum class Started : std::uint8_t { ended, waits, not_at_all };

  explicit GrpcDecision(GrpcService& service);
  GrpcDecision(const GrpcDecision&) = delete;
  GrpcDecision& operator=(const GrpcDecision&) = delete;
  ~GrpcDecision() = default;

  // After Started::waits, it belongs to the call until on_decided() or drop_result().
  Started start(GrpcDecisionOwner& owner, GrpcCall& call, std::string_view message);
  void run() noexcept override;

  // The call is over; drop the result.
  void drop_result() { call_ = nullptr; }
  GrpcCall* call() const { return call_; }  // null after drop_result()

  // After the end: the outcome, and the framed answer.
  GrpcOutcome& outcome() { return outcome_; }
  const std::string& answer() const { return out_; }

  GrpcDecision* next = nullptr;  // for lists of the owner

 private:
  friend class GrpcDecisions;
  void decide();

  GrpcService& service_;
  RateLimitMethod method_;
  GrpcDecisionOwner* owner_ = nullptr;
  GrpcCall* call_ = nullptr;
  std::string message_, request_id_, out_;
  std::optional<protocol::TraceParent> trace_;
  GrpcOutcome outcome_;
  bool is_at_once_ = false;  // start() has not returned
  bool has_ended_ = false;
};

class GrpcDecisions {
 public:
  explicit GrpcDecisions(GrpcService& service) : service_(service) {}
  GrpcDecisions(const GrpcDecisions&) = delete;
  GrpcDecisions& operator=(const GrpcDecisions&) = delete;

  std::unique_ptr<GrpcDecision> take();
  void give(std::unique_ptr<GrpcDecision> ended) noexcept;

 private:
  static constexpr std::size_t kKept = 256;
  static constexpr std::size_t kCapacityKept = std::size_t{16} << 10;

  GrpcService& service_;
  std::vector<std::unique_ptr<GrpcDecision>> free_;
};

}  // namespace weir::server::grpc
