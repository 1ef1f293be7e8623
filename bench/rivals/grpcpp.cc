// What Envoy's rate limit service costs with grpc++ when there is nothing to decide: it always answers the same.
//
// The asynchronous interface with one completion queue and one thread, the fastest of the usual ways on one core. It
// picks a free port and says so as `weir serve` does. One thread, beside those that grpc++ keeps.
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <memory>
#include <string>

#include "rls.grpc.pb.h"

namespace {

using namespace envoy::service::ratelimit::v3;

constexpr int kCallsReady = 1'024;  // so many may arrive before the queue is looked at

// One call from its arrival to its end. It owns itself, since grpc++ hands back no more than a pointer.
class Call {
 public:
  Call(RateLimitService::AsyncService& service, grpc::ServerCompletionQueue& queue)
      : service_(service), queue_(queue), writer_(&context_) {
    service_.RequestShouldRateLimit(&context_, &request_, &writer_, &queue_, &queue_, this);
  }

  void proceed(bool is_good) {
    if (!is_good || is_answered_) {
      delete this;
      return;
    }
    new Call(service_, queue_);  // takes our place
    is_answered_ = true;
    writer_.Finish(answer(), grpc::Status::OK, this);
  }

 private:
  RateLimitResponse answer() const {
    RateLimitResponse response;
    response.set_overall_code(1);
    for (int i = 0; i < request_.descriptors_size(); ++i) {
      DescriptorStatus* status = response.add_statuses();
      status->set_code(1);
      status->set_limit_remaining(99);
      status->mutable_current_limit()->set_requests_per_unit(100);
      status->mutable_current_limit()->set_unit(1);
    }
    return response;
  }

  RateLimitService::AsyncService& service_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  RateLimitRequest request_;
  grpc::ServerAsyncResponseWriter<RateLimitResponse> writer_;
  bool is_answered_ = false;
};

}  // namespace

int main() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  RateLimitService::AsyncService service;
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  for (int i = 0; i < kCallsReady; ++i) new Call(service, *queue);
  std::printf("grpc  http://127.0.0.1:%d\nready\n", port);
  std::fflush(stdout);
  void* call = nullptr;
  bool is_good = false;
  while (queue->Next(&call, &is_good)) static_cast<Call*>(call)->proceed(is_good);
}
