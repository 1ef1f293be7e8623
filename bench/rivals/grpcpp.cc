// The cost of Envoy's rate limit service in grpc++ without any decision: it always sends the same answer.
//
// It uses the asynchronous interface with one completion queue and one thread, which is the fastest of the usual ways
// on one core. It picks a free port and prints it as `weir serve` does. One thread beside those of grpc++.
#include <grpcpp/grpcpp.h>

#include <cstdio>

#include "rls.grpc.pb.h"

namespace {

using namespace envoy::service::ratelimit::v3;

constexpr int kCallsReady = 1'024;  // calls that may arrive before this program reads the queue

// One call from its arrival to its end. It deletes itself, because grpc++ keeps only a pointer to it.
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
    new Call(service_, queue_);  // waits for the next call
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
