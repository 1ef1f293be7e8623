// A store whose clock stands still, and functions that tests of stores share.
//
// StoreTest is the fixture of store_contract_test.cc, full_table_test.cc and others. Many tests use only the functions.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "algorithm/limit.h"
#include "engine.h"
#include "on_threads.h"
#include "store/memory_store.h"
#include "weir/clock.h"

namespace weir::test {

inline constexpr std::int64_t kNow = 1'794'701'843'991'953;

inline Limit limit_of(std::string_view quota, Algorithm algorithm) { return compile(quota, algorithm).value(); }

class StoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<store::MemoryStore> make(std::size_t keys_max = 100'000, std::size_t log_bytes = 0) {
    clock_->set(Micros{kNow});
    return store::MemoryStore::open({.keys = keys_max, .log_bytes = log_bytes}, clock_).value();
  }

  Decision charge(store::MemoryStore& store, std::string_view key, const Limit& limit, std::int64_t cost,
                  std::int64_t now = kNow) {
    const Charge one{.key = key, .limit = &limit, .cost = cost};
    const auto verdict = store.charge({&one, 1}, now);
    EXPECT_TRUE(verdict) << verdict.error().message;
    return verdict ? verdict->decisions.front() : Decision{};
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

}  // namespace weir::test
