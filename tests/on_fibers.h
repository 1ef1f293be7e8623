// Makes the sessions of a test work on fibers, before a store that lets each call wait: the same tests, once more.
//
// Included before all else into the tests of the sessions, compiled a second time: there make_http_session() and its
// like make sessions that are driven to their answer by whatever a test calls, as if nothing had waited. Those who wait
// together, as the calls of a gRPC connection do, are answered in random order. One thread. Used by on_fibers_test.
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

// Of the process: nothing is under way between two calls of a session.
struct FarAway {
  std::mt19937_64 random = seeded();
  SlowStore store{};
  Fibers fibers{};
  Errands errands{fibers};

  static FarAway& get() {
    static FarAway only;
    return only;
  }
};

class OnFibers final : public Session, private SessionOwner {
 public:
  explicit OnFibers(Limiter& limiter) : limiter_(limiter), turn_(limiter) {}
  OnFibers(const OnFibers&) = delete;
  OnFibers& operator=(const OnFibers&) = delete;
  ~OnFibers() override {
    session_.reset();
    while (far_.fibers.under_way() > 0) far_.store.answer_one(far_.random);
  }

  template <class MakeDesk>
  Desks& use_desks(MakeDesk make) {
    return desks_.emplace(far_.errands, std::move(make), WithoutFiber::shed);
  }
  void drive(std::unique_ptr<Session> session) {
    session_ = std::move(session);
    session_->belong_to(this);
  }

  Progress consume(std::string_view input, Turn& turn, std::string& output) override {
    Progress all = session_->consume(input, turn, output);
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
  void tell_watchers(std::string& output) override { session_->tell_watchers(output); }
  void drain(std::string& output) override {
    session_->drain(output);
    go_on(turn_, output, later_);
  }
  bool is_drained() const override { return session_->is_drained(); }
  void give_up(GiveUp why, std::string& output) override { session_->give_up(why, output); }
  std::size_t held() const override { return session_->held(); }

 private:
  void on_ready() override { is_ready_ = true; }

  void go_on(Turn& turn, std::string& output, Progress& all) {
    while (true) {
      while (!is_ready_ && far_.fibers.under_way() > 0) far_.store.answer_one(far_.random);
      if (!std::exchange(is_ready_, false)) return;
      session_->wake(limiter_.now(), output);
      if (session_->is_holding()) continue;
      const Progress more = session_->consume({}, turn, output);
      all.answered += more.answered;
      all.phase = more.phase;
      all.full = more.full;
      all.close = all.close || more.close;
    }
  }

  FarAway& far_ = FarAway::get();
  Limiter& limiter_;
  Turn turn_;
  Progress later_{};
  std::optional<Desks> desks_;
  std::unique_ptr<Session> session_;
  bool is_ready_ = false;
};

inline std::unique_ptr<Session> make_http_session_on_fibers(HttpService& service, std::string peer = "127.0.0.1") {
  auto session = std::make_unique<OnFibers>(service.limiter);
  Desks& desks = session->use_desks([&service] { return std::make_unique<HttpDesk>(service); });
  session->drive(make_http_session(desks, std::move(peer)));
  return session;
}

inline std::unique_ptr<Session> make_resp_session_on_fibers(RespService& service, std::int64_t id,
                                                            std::string peer = {}) {
  auto session = std::make_unique<OnFibers>(service.limiter);
  Desks& desks = session->use_desks([&service] { return std::make_unique<RespDesk>(service); });
  session->drive(make_resp_session(desks, id, std::move(peer)));
  return session;
}

inline std::unique_ptr<Session> make_grpc_session_on_fibers(GrpcService& service) {
  auto session = std::make_unique<OnFibers>(service.limiter);
  service.errands = &FarAway::get().errands;
  session->drive(make_grpc_session(service));
  return session;
}

}  // namespace weir::test

#define WEIR_ON_FIBERS
#define make_http_session test::make_http_session_on_fibers
#define make_resp_session test::make_resp_session_on_fibers
#define make_grpc_session test::make_grpc_session_on_fibers
