// A limiter's own store behind a wait, as of a store over a network: for LimiterOptions::shared.
//
// `wait` runs before each call, on the caller's thread, and may suspend its fiber. Then the memory store decides, at
// the time that its clock shows by then. Any thread. Used by slow_store.h and far_store.h.
#pragma once

#include <functional>
#include <utility>

#include "store/memory_store.h"

namespace weir::test {

class WaitingStore : public store::Store {
 public:
  explicit WaitingStore(std::function<void()> wait) : wait_(std::move(wait)) {}

  void use(store::MemoryStore& here) override { here_ = &here; }
  Result<Decision> check(const Charge& charge, std::int64_t) override { return here_->check(charge, waited()); }
  void check_many(std::span<const Charge> charges, std::int64_t, std::span<Result<Decision>> answers) override {
    here_->check_many(charges, waited(), answers);
  }
  Result<Decision> preview(const Charge& charge, std::int64_t) override { return here_->preview(charge, waited()); }
  Result<Decision> acquire(const Charge& charge, std::string_view id, std::int64_t) override {
    return here_->acquire(charge, id, waited());
  }
  Result<bool> release(std::string_view key, std::string_view id, std::int64_t) override {
    return here_->release(key, id, waited());
  }
  Result<bool> reset(std::string_view key, std::int64_t) override { return here_->reset(key, waited()); }

  Result<table::Ruling> decide_all(const Request& request, std::span<Decision> decisions,
                                   std::span<std::int64_t> reserved) override {
    Request later = request;
    later.now = waited();
    return here_->decide_all(later, decisions, reserved);
  }

 private:
  std::int64_t waited() {
    wait_();
    return here_->clock().now().count();
  }

  std::function<void()> wait_;
  store::MemoryStore* here_ = nullptr;
};

}  // namespace weir::test
