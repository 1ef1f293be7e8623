// The limiter's interface to the place where limits are counted: the process's own table (memory_store.h), or a store
// that several processes share over a network (fleet/fleet_store.h).
//
// `now` is a reading of the process's clock; a store with a clock of its own ignores it. A store over a network
// returns within its deadline, even if the network fails. Every decision says how it was made. Such a call may
// wait: on a fiber (fiber.h) it suspends the fiber, elsewhere it blocks the thread. A request that names a key twice
// is charged for it once, with the sum of the costs: this happens here, for every store. Any thread may call any
// member. Tested by tests/store_contract_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "table/transaction.h"
#include "weir/clock.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::store {

class MemoryStore;

// An idempotency id; an empty name means none.
struct RequestId {
  std::string_view name{};
  Micros lasts{600'000'000};
};

// The errors of settling a reservation that does not exist, and of reserving under an id that is in use.
inline Error not_reserved() {
  return {ErrorCode::not_found, "no such reservation for this request: it was already settled, or it has expired"};
}
inline Error reserved_already() {
  return {ErrorCode::invalid_argument, "this reservation is already open: settle it, or use another id"};
}

class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // What a commit or a refund returned of one charge.
  struct Returned {
    std::int64_t permits = 0;
    std::int64_t charged_us = 0;  // when they were charged
  };

  // A request of up to 32 charges, all or none, on its way to a store.
  struct Request {
    enum class What : std::uint8_t { charge, overdraw, reserve, commit, refund };
    What what = What::charge;
    std::span<const Charge> charges{};  // each key once
    std::string_view id{};              // of a reservation; of an idempotent charge, or empty
    Micros lasts{0};                    // of the id
    std::int64_t now = 0;
    std::int64_t charged_us = 0;     // refund
    std::span<Returned> returned{};  // commit, refund: empty, or one element per charge
  };

  // For a store over a network, before any other call: the process's own store, which must outlive it. It decides
  // when the network cannot.
  virtual void use(MemoryStore&) {}
  // How many processes share it, as far as known, including this one; 0: no others can.
  virtual std::uint32_t nodes() const { return 0; }

  // check(), check_many()
  //
  // The fast path: requests of one charge each. Many are decided in order.
  virtual Result<Decision> check(const Charge& charge, std::int64_t now) = 0;
  virtual void check_many(std::span<const Charge> charges, std::int64_t now, std::span<Result<Decision>> answers) = 0;

  // charge(), charge_into()
  //
  // One request of up to 32 charges: charges all or none. If a request with this id was allowed before, this one is
  // allowed, returns the current state of its keys and is charged nothing. charge_into() writes one decision per charge
  // into the caller's array instead of allocating.
  Result<Verdict> charge(std::span<const Charge> charges, std::int64_t now, RequestId id = {});
  Result<bool> charge_into(std::span<const Charge> charges, std::int64_t now, std::span<Decision> decisions);

  // overdraw()
  //
  // Up to 32 charges, each as much as fits. Never denies.
  Result<Verdict> overdraw(std::span<const Charge> charges, std::int64_t now);

  // reserve(), commit()
  //
  // Charges up to 16 limits, to be settled later, once, at the actual costs. Excess is refunded to the state that was
  // charged, as of then; a shortfall is charged now, at most to full. commit() fails with not_found if there is no
  // such reservation.
  Result<Verdict> reserve(std::span<const Charge> charges, std::string_view id, Micros lasts, std::int64_t now);
  Result<Verdict> commit(std::span<const Charge> actual, std::string_view id, std::int64_t now);

  // preview()
  //
  // What check() would return, except that `remaining` is what is left before the charge. Changes nothing.
  virtual Result<Decision> preview(const Charge& charge, std::int64_t now) = 0;

  virtual Result<Decision> acquire(const Charge& charge, std::string_view id, std::int64_t now) = 0;
  virtual Result<bool> release(std::string_view key, std::string_view id, std::int64_t now) = 0;
  virtual Result<bool> reset(std::string_view key, std::int64_t now) = 0;

  // decide_all()
  //
  // Writes the decision of each charge; for a commit also what each had reserved, into an array that is otherwise
  // empty. A missing reservation, or one that exists already, is an error.
  virtual Result<table::Ruling> decide_all(const Request& request, std::span<Decision> decisions,
                                           std::span<std::int64_t> reserved) = 0;

 protected:
  // Merges equal keys, lets decide_all() answer, and assembles the verdict of all charges.
  Result<Verdict> answer(Request request);
};

}  // namespace weir::store
