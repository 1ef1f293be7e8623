// The C interface: results equal those of C++, errors have codes and texts, and wrong pointers or sizes do no harm.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "weir/limiter.h"
#include "weir/weir.h"

namespace {

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    weir_options options = WEIR_OPTIONS;
    options.keys = 1000;
    ASSERT_EQ(weir_open(&options, &limiter_), WEIR_OK) << weir_last_error();
  }
  void TearDown() override { weir_close(limiter_); }

  // The default is so slow that nothing recovers while a test runs.
  const weir_limit* limit(const char* quota = "5/year burst 5", const char* algorithm = nullptr) {
    weir_limit* made = nullptr;
    EXPECT_EQ(weir_compile(algorithm, quota, &made), WEIR_OK) << weir_last_error();
    limits_.emplace_back(made, weir_limit_free);
    return made;
  }
  std::int64_t remaining(const weir_limit* of, const char* key = "k") {
    weir_decision decision{};
    EXPECT_EQ(weir_peek(limiter_, of, key, WEIR_STRING, &decision), WEIR_OK) << weir_last_error();
    return decision.remaining;
  }

  weir_limiter* limiter_ = nullptr;
  weir_decision decision_{};  // of the last call
  std::int32_t allowed_ = 0;
  std::vector<std::unique_ptr<weir_limit, decltype(&weir_limit_free)>> limits_;
};

TEST_F(CApi, KnowsItsVersion) {
  EXPECT_EQ(weir_abi_version(), std::uint32_t{WEIR_ABI_VERSION});
  EXPECT_NE(std::strchr(weir_version(), '.'), nullptr);
}

TEST_F(CApi, ChecksPeeksRefundsAndResets) {
  const weir_limit* five = limit();
  ASSERT_EQ(weir_check(limiter_, five, "key", 1, 3, &decision_), WEIR_OK);
  EXPECT_EQ(decision_.allowed, 1);
  EXPECT_EQ(decision_.limit, 5);
  EXPECT_EQ(decision_.remaining, 2);
  EXPECT_EQ(decision_.retry_after_us, 0);
  EXPECT_EQ(remaining(five), 2) << "one byte of the text was the key";
  ASSERT_EQ(weir_check(limiter_, five, "k", WEIR_STRING, 3, &decision_), WEIR_OK);
  EXPECT_EQ(decision_.allowed, 0);
  EXPECT_GT(decision_.retry_after_us, 0);
  ASSERT_EQ(weir_check(limiter_, five, "k", WEIR_STRING, 6, &decision_), WEIR_OK);
  EXPECT_EQ(decision_.retry_after_us, WEIR_NEVER);
  ASSERT_EQ(weir_give_back(limiter_, five, "k", 1, 2, &decision_), WEIR_OK);
  EXPECT_EQ(decision_.remaining, 4);
  EXPECT_EQ(weir_size(limiter_), 1u);
  std::int32_t found = 7;
  ASSERT_EQ(weir_reset(limiter_, "k", 1, &found), WEIR_OK);
  EXPECT_EQ(found, 1);
  ASSERT_EQ(weir_reset(limiter_, "k", 1, nullptr), WEIR_OK);
  EXPECT_EQ(remaining(five), 5);
  EXPECT_GT(weir_now_us(limiter_), 1'700'000'000'000'000);
  weir_sweep(limiter_);
}

TEST_F(CApi, ChargesSeveralLimitsOrNone) {
  const weir_limit *five = limit(), *three = limit("3/year burst 3");
  const weir_charge charges[] = {{"a", WEIR_STRING, five, 2}, {"b", WEIR_STRING, three, 2}};
  weir_decision decisions[2];
  std::size_t binding = 9;
  ASSERT_EQ(weir_check_all(limiter_, charges, 2, &allowed_, decisions, &binding), WEIR_OK);
  EXPECT_EQ(allowed_, 1);
  EXPECT_EQ(binding, 1u);
  EXPECT_EQ(decisions[0].remaining, 3);
  ASSERT_EQ(weir_check_all(limiter_, charges, 2, &allowed_, nullptr, nullptr), WEIR_OK);
  EXPECT_EQ(allowed_, 0);
  EXPECT_EQ(remaining(five, "a"), 3);
  EXPECT_EQ(weir_check_all(limiter_, charges, 0, &allowed_, nullptr, nullptr), WEIR_OUT_OF_RANGE);
  const std::vector<weir_charge> many(WEIR_CHARGES_MAX + 1, charges[0]);
  EXPECT_EQ(weir_check_all(limiter_, many.data(), many.size(), &allowed_, nullptr, nullptr), WEIR_OUT_OF_RANGE);
}

TEST_F(CApi, ChecksManyAndReportsEach) {
  const weir_limit* five = limit("100/year burst 100");
  std::vector<weir_charge> charges(150, weir_charge{"k", WEIR_STRING, five, 1});
  charges[70].key_bytes = 0;
  charges[130].limit = nullptr;
  std::vector<weir_decision> decisions(charges.size());
  std::vector<weir_status> statuses(charges.size(), -1);
  EXPECT_EQ(weir_check_many(limiter_, charges.data(), charges.size(), decisions.data(), statuses.data()),
            WEIR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(weir_last_error()).find("empty"), std::string::npos)
      << weir_last_error() << ": the first one's";
  int admitted = 0;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    EXPECT_EQ(statuses[i] == WEIR_OK, i != 70 && i != 130) << i;
    admitted += decisions[i].allowed;
  }
  EXPECT_EQ(admitted, 100);
  EXPECT_EQ(weir_check_many(limiter_, nullptr, 0, nullptr, nullptr), WEIR_OK);
}

TEST_F(CApi, AcquiresAndReleases) {
  const weir_limit* one = limit("1 concurrent");
  ASSERT_EQ(weir_acquire(limiter_, one, "db", 2, "a", 1, 1, &decision_), WEIR_OK);
  EXPECT_EQ(decision_.allowed, 1);
  ASSERT_EQ(weir_acquire(limiter_, one, "db", 2, "b", 1, 1, &decision_), WEIR_OK);
  EXPECT_EQ(decision_.allowed, 0);
  std::int32_t held = 0;
  ASSERT_EQ(weir_release(limiter_, "db", 2, "a", 1, &held), WEIR_OK);
  EXPECT_EQ(held, 1);
  EXPECT_EQ(weir_release(limiter_, "db", 2, nullptr, 1, &held), WEIR_INVALID_ARGUMENT);
}

TEST_F(CApi, ReservesCommitsAndCancels) {
  const weir_limit* hundred = limit("100/year burst 100");
  weir_charge charge{"k", WEIR_STRING, hundred, 60};
  char id[WEIR_RESERVATION_BYTES], other[WEIR_RESERVATION_BYTES];
  ASSERT_EQ(weir_reserve(limiter_, &charge, 1, 0, id, &allowed_, &decision_), WEIR_OK) << weir_last_error();
  EXPECT_EQ(allowed_, 1);
  EXPECT_EQ(std::strlen(id), 32u);
  EXPECT_EQ(decision_.remaining, 40);
  ASSERT_EQ(weir_reserve(limiter_, &charge, 1, 0, other, &allowed_, nullptr), WEIR_OK);
  EXPECT_EQ(allowed_, 0);
  EXPECT_EQ(std::strlen(other), 0u) << "there is nothing to commit";
  charge.cost = 10;
  ASSERT_EQ(weir_commit(limiter_, id, &charge, 1, &decision_), WEIR_OK) << weir_last_error();
  EXPECT_EQ(decision_.remaining, 90);
  EXPECT_NE(weir_commit(limiter_, id, &charge, 1, &decision_), WEIR_OK) << "once";
  ASSERT_EQ(weir_reserve(limiter_, &charge, 1, 0, id, &allowed_, nullptr), WEIR_OK);
  ASSERT_EQ(weir_cancel(limiter_, id, &charge, 1), WEIR_OK) << weir_last_error();
  EXPECT_EQ(remaining(hundred), 90);
  EXPECT_NE(weir_cancel(limiter_, id, &charge, 1), WEIR_OK) << "once";
  EXPECT_EQ(weir_reserve(limiter_, &charge, 1, 0, id, nullptr, nullptr), WEIR_INVALID_ARGUMENT);
}

TEST_F(CApi, ChargesARepeatedRequestOnce) {
  const weir_limit* five = limit();
  const weir_charge charge{"k", WEIR_STRING, five, 3};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(weir_check_once(limiter_, "request-1", WEIR_STRING, 0, &charge, 1, &allowed_, nullptr, nullptr), WEIR_OK)
        << weir_last_error();
    EXPECT_EQ(allowed_, 1);
  }
  EXPECT_EQ(remaining(five), 2);
  EXPECT_EQ(weir_check_once(limiter_, "", 0, 0, &charge, 1, &allowed_, nullptr, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_check_once(limiter_, "x", 1, -1, &charge, 1, &allowed_, nullptr, nullptr), WEIR_OUT_OF_RANGE);
}

TEST_F(CApi, WaitsUntilADeadline) {
  const weir_limit *fast = limit("1000/s burst 1"), *slow = limit("1/year burst 1");
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(weir_wait(limiter_, fast, "k", 1, 1, INT64_MAX, &decision_), WEIR_OK);
    EXPECT_EQ(decision_.allowed, 1);
  }
  weir_check(limiter_, slow, "s", 1, 1, &decision_);
  ASSERT_EQ(weir_wait(limiter_, slow, "s", 1, 1, weir_now_us(limiter_) + 1'000'000, &decision_), WEIR_OK);
  EXPECT_EQ(decision_.allowed, 0);
  EXPECT_EQ(weir_wait(limiter_, slow, "s", 1, 0, 0, &decision_), WEIR_OUT_OF_RANGE);
}

TEST_F(CApi, SaysWhatIsWrong) {
  weir_limit* made = nullptr;
  EXPECT_EQ(weir_compile(nullptr, "10/secnd", &made), WEIR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(weir_last_error()).find("10/second"), std::string::npos) << weir_last_error();
  EXPECT_EQ(weir_compile("token_bukcet", "10/s", &made), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  const std::string long_text(5000, 'x');
  EXPECT_NE(weir_compile(nullptr, long_text.c_str(), &made), WEIR_OK);
  EXPECT_LT(std::strlen(weir_last_error()), 512u);
  std::thread([] { EXPECT_STREQ(weir_last_error(), ""); }).join();
}

TEST_F(CApi, AcceptsATotalMemory) {
  weir_options options = WEIR_OPTIONS;
  options.memory = 1'000;
  weir_limiter* other = nullptr;
  EXPECT_EQ(weir_open(&options, &other), WEIR_OUT_OF_RANGE);
  EXPECT_NE(std::string(weir_last_error()).find("too few"), std::string::npos) << weir_last_error();
  options.memory = 5'000'000;
  ASSERT_EQ(weir_open(&options, &other), WEIR_OK) << weir_last_error();
  EXPECT_EQ(weir_sweep(other), 1) << "a round through so few pages is one slice";
  weir_close(other);
}

TEST_F(CApi, RefusesNullsAndUnknownSizes) {
  const weir_limit* five = limit();
  weir_limiter* other = nullptr;
  weir_limit* made = nullptr;
  weir_options options = WEIR_OPTIONS;
  options.size += 8;
  EXPECT_EQ(weir_open(&options, &other), WEIR_INVALID_ARGUMENT);
  options.size = 8;
  EXPECT_EQ(weir_open(&options, &other), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_open(nullptr, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_compile(nullptr, nullptr, &made), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_compile(nullptr, "1/s", nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_check(nullptr, five, "k", 1, 1, &decision_), WEIR_INVALID_ARGUMENT);
  EXPECT_STREQ(weir_last_error(), "limiter is NULL");
  EXPECT_EQ(weir_check(limiter_, nullptr, "k", 1, 1, &decision_), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_check(limiter_, five, nullptr, 1, 1, &decision_), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_check(limiter_, five, "k", 1, 1, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_check_all(limiter_, nullptr, 1, nullptr, nullptr, nullptr), WEIR_INVALID_ARGUMENT);
  const weir_charge without_limit{"k", 1, nullptr, 1};
  EXPECT_EQ(weir_check_all(limiter_, &without_limit, 1, nullptr, nullptr, nullptr), WEIR_INVALID_ARGUMENT);
  EXPECT_EQ(weir_now_us(nullptr), -1);
  EXPECT_EQ(weir_size(nullptr), 0u);
  weir_sweep(nullptr);
  weir_close(nullptr);
  weir_limit_free(nullptr);
  EXPECT_EQ(other, nullptr);
}

}  // namespace
