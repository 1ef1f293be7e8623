// The limiter's interface to a store that several processes share over a network: the memory store's calls.
//
// Each call returns within its deadline, whatever the network does. Every decision says how it was made. A call may
// wait: on a fiber (fiber.h) it suspends the fiber, elsewhere it blocks the thread. `here` is the process's own
// memory store, which decides when the network cannot. Any thread may call any member. Implemented by
// fleet/fleet_store.h; tested by tests/fleet_nodes_test.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "store/memory_store.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

class SharedStore {
 public:
  virtual ~SharedStore() = default;
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;

  // Must be called before any other member. `here` must outlive this object.
  virtual void use(MemoryStore& here) = 0;

  // Like those of MemoryStore.
  virtual Result<Decision> check(const Charge& charge) = 0;
  virtual void check_many(std::span<const Charge> charges, std::span<Result<Decision>> answers) = 0;
  virtual Result<Verdict> charge(std::span<const Charge> charges, RequestId id = {}) = 0;
  virtual Result<MemoryStore::Judgement> judge(std::span<const Charge> charges, std::span<Decision> decisions) = 0;
  virtual Result<Decision> preview(const Charge& charge) = 0;
  virtual Result<Verdict> overdraw(std::span<const Charge> charges) = 0;
  virtual Result<Verdict> reserve(std::span<const Charge> charges, std::string_view id, Micros lasts) = 0;
  virtual Result<Verdict> commit(std::span<const Charge> actual, std::string_view id) = 0;
  virtual Result<Decision> acquire(const Charge& charge, std::string_view id) = 0;
  virtual Result<bool> release(std::string_view key, std::string_view id) = 0;
  virtual Result<bool> reset(std::string_view key) = 0;

  // How many processes share it, as far as known, including this one.
  virtual std::uint32_t nodes() const = 0;

 protected:
  SharedStore() = default;
};

}  // namespace weir
