// Runs the sessions of a test on fibers, with a store that lets each call wait: the same tests, once more.
//
// Included before all else into the tests of the sessions, which are compiled a second time. There make_http_session()
// and similar functions make sessions of which every call returns with its answers, as if nothing had waited. Calls
// that wait together, as those of a gRPC connection, get their answers in random order. One thread. Used by
// on_fibers_test.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/grpc/grpc_session.h"
#include "server/http/http_session.h"
#include "server/loop/fiber_session.h"
#include "server/resp/resp_session.h"
#include "slow_store.h"

namespace weir::test {

// One for the process: no call is in flight between two calls of a session.
struct FarAway {
  std::mt19937_64 random = seeded();
  SlowStore store{};
  base::Fibers fibers{};
  server::loop::FiberTasks tasks{fibers};

  static FarAway& get() {
    static FarAway only;
    return only;
  }
};

class OnFibers final : public server::loop::Session, private server::loop::SessionOwner {
 public:
  explicit OnFibers(Limiter& limiter) : limiter_(limiter), turn_(limiter) {}
  OnFibers(const OnFibers&) = delete;
  OnFibers& operator=(const OnFibers&) = delete;
  ~OnFibers() override {
    session_.reset();
    while (far_.fibers.in_flight() > 0) far_.store.answer_one(far_.random);
  }

  template <class MakeContext>
  server::loop::ContextPool& use_pool(MakeContext make) {
    return pool_.emplace(far_.tasks, std::move(make), server::loop::WithoutFiber::shed);
  }
  void drive(std::unique_ptr<server::loop::Session> session) {
    session_ = std::move(session);
    session_->set_owner(this);
  }

  server::loop::Progress consume(std::string_view input, server::loop::Turn& turn, std::string& output) override {
    server::loop::Progress all = session_->consume(input, turn, output);
    all.answered += std::exchange(later_.answered, 0);
    all.close = all.close || later_.close;
    go_on(turn, output, all);
    return all;
  }
  Micros due() const override { return session_->due(); }
  bool is_holding() const override { return session_->is_holding(); }
  void wake(Micros now, std::string& output) override {
    session_->wake(now, output);
    go_on(turn_, output, later_);
  }
  void announce_stop(std::string& output) override { session_->announce_stop(output); }
  void drain(std::string& output) override {
    session_->drain(output);
    go_on(turn_, output, later_);
  }
  bool is_drained() const override { return session_->is_drained(); }
  void give_up(server::loop::GiveUp why, std::string& output) override { session_->give_up(why, output); }
  std::size_t held() const override { return session_->held(); }

 private:
  void on_ready() override { is_ready_ = true; }

  void go_on(server::loop::Turn& turn, std::string& output, server::loop::Progress& all) {
    while (true) {
      while (!is_ready_ && far_.fibers.in_flight() > 0) far_.store.answer_one(far_.random);
      if (!std::exchange(is_ready_, false)) return;
      session_->wake(limiter_.now(), output);
      if (session_->is_holding()) continue;
      const server::loop::Progress more = session_->consume({}, turn, output);
      all.answered += more.answered;
      all.phase = more.phase;
      all.full = more.full;
      all.close = all.close || more.close;
    }
  }

  FarAway& far_ = FarAway::get();
  Limiter& limiter_;
  server::loop::Turn turn_;
  server::loop::Progress later_{};
  std::optional<server::loop::ContextPool> pool_;
  std::unique_ptr<server::loop::Session> session_;
  bool is_ready_ = false;
};

inline std::unique_ptr<server::loop::Session> make_http_session_on_fibers(server::http::HttpService& service,
                                                                          std::string peer = "127.0.0.1") {
  auto session = std::make_unique<OnFibers>(service.limiter);
  server::loop::ContextPool& pool =
      session->use_pool([&service] { return std::make_unique<server::http::HttpContext>(service); });
  session->drive(server::http::make_http_session(pool, std::move(peer)));
  return session;
}

inline std::unique_ptr<server::loop::Session> make_resp_session_on_fibers(server::resp::RespService& service,
                                                                          std::int64_t id, std::string peer = {}) {
  auto session = std::make_unique<OnFibers>(service.limiter);
  server::loop::ContextPool& pool =
      session->use_pool([&service] { return std::make_unique<server::resp::RespContext>(service); });
  session->drive(server::resp::make_resp_session(pool, id, std::move(peer)));
  return session;
}

inline std::unique_ptr<server::loop::Session> make_grpc_session_on_fibers(server::grpc::GrpcService& service) {
  auto session = std::make_unique<OnFibers>(service.limiter);
  service.tasks = &FarAway::get().tasks;
  session->drive(server::grpc::make_grpc_session(service));
  return session;
}

}  // namespace weir::test

namespace weir::server::http {
using test::make_http_session_on_fibers;
}  // namespace weir::server::http
namespace weir::server::resp {
using test::make_resp_session_on_fibers;
}  // namespace weir::server::resp
namespace weir::server::grpc {
using test::make_grpc_session_on_fibers;
}  // namespace weir::server::grpc

#define WEIR_ON_FIBERS
#define make_http_session make_http_session_on_fibers
#define make_resp_session make_resp_session_on_fibers
#define make_grpc_session make_grpc_session_on_fibers
