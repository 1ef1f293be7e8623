// A store whose clock stands still, and the few words that tests of stores are written in.
//
// Fixture of store_contract_test.cc and full_table_test.cc; churn, process and linearizable_test.cc take words from it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "algorithm/limit.h"
#include "store/memory_store.h"
#include "weir/clock.h"

namespace weir::test {

inline constexpr std::int64_t kNow = 1'794'701'843'991'953;
inline constexpr Algorithm kChecked[] = {Algorithm::fixed_window, Algorithm::sliding_log,  Algorithm::sliding_window,
                                         Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::leaky_meter};

inline Limit limit_of(std::string_view quota, Algorithm algorithm) { return compile(quota, algorithm).value(); }

// work(0), work(1), ..., each on a thread of its own; until all are done.
inline void on_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

template <class Store>
class StoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> make(std::size_t keys_max = 100'000, std::size_t log_bytes = 0) {
    clock_->set(Micros{kNow});
    return Store::open({.keys = keys_max, .log_bytes = log_bytes}, clock_).value();
  }

  Decision charge(Store& store, std::string_view key, const Limit& limit, std::int64_t cost, std::int64_t now = kNow) {
    const Charge one{.key = key, .limit = &limit, .cost = cost};
    const auto verdict = store.charge({&one, 1}, now);
    EXPECT_TRUE(verdict) << verdict.error().message;
    return verdict ? verdict->decisions.front() : Decision{};
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

}  // namespace weir::test
