// Every file of examples/presets keeps the promise of its comment: that number of requests passes, then a denial names
// the rule and the limit, and after the wait that the denial gives, a request passes again.
//
// The name of a test begins with its preset, and the fixture loads that one. LeaveNoFileWithoutATest finds a preset
// without a test. (examples_test.cc checks that all files are valid.)
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "gate_fixture.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

// AwsApiGateway of aws-api-gateway.
std::string title(const std::string& preset) {
  std::string out;
  bool is_first = true;
  for (const char c : preset) {
    if (c != '-') out += static_cast<char>(is_first ? c - 'a' + 'A' : c);
    is_first = c == '-';
  }
  return out;
}

bool is_about(const std::string& test, const std::string& preset) {
  const std::string start = title(preset);
  return test.size() > start.size() && test.starts_with(start) && test[start.size()] >= 'A' &&
         test[start.size()] <= 'Z';
}

std::set<std::string> presets() {
  std::set<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/examples/presets")) {
    names.insert(file.path().stem().string());
  }
  return names;
}

// What an unused limit promises to a client that sends all requests at once.
struct Promise {
  Algorithm algorithm{};
  int passes = 0;
  std::string denied_by;
  Micros retry_after{0};  // when the next one passes
  Micros recovers_in{0};  // without traffic, until the limit is unused again
};

class Presets : public test::GateTest {
 protected:
  void SetUp() override {
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    for (const std::string& preset : presets()) {
      if (is_about(name, preset)) use(test::read_file(WEIR_SOURCE_DIR "/examples/presets/" + preset + ".yaml"));
    }
  }

  void expect(const Request& request, const Promise& promise) {
    const auto send_all = [&] {
      EXPECT_EQ(passed(promise.passes, request), promise.passes) << promise.denied_by;
      const Answer denied = ask(request);
      EXPECT_FALSE(denied.allowed) << promise.denied_by;
      EXPECT_EQ(binding(denied), promise.denied_by);
      EXPECT_EQ(denied.binding_limit()->limit->algorithm, promise.algorithm) << promise.denied_by;
      return denied;
    };
    EXPECT_EQ(send_all().retry_after, promise.retry_after) << promise.denied_by;
    go_on(promise.retry_after - 1us);
    EXPECT_FALSE(ask(request).allowed) << "too early: " << promise.denied_by;
    go_on(1us);
    EXPECT_TRUE(ask(request).allowed) << "too late: " << promise.denied_by;
    go_on(promise.recovers_in);
    send_all();
  }
  // Goes on to the start of a window of this period.
  void go_on_to_a_full(Micros period) { go_on(period - Micros{clock->now().count() % period.count()}); }
  // After expect(), which uses all permits: whether another request is allowed all the same.
  void expect_room_for(const Request& other) { EXPECT_TRUE(ask(other).allowed) << denied_by(other); }
  void expect_no_room_for(const Request& other) { EXPECT_FALSE(ask(other).allowed); }
};

TEST(PresetFiles, LeaveNoFileWithoutATest) {
  std::vector<std::string> tests;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; suite.name() == std::string("Presets") && k < suite.total_test_count(); ++k) {
      tests.emplace_back(suite.GetTestInfo(k)->name());
    }
  }
  EXPECT_GE(presets().size(), 20U);
  for (const std::string& preset : presets()) {
    EXPECT_TRUE(std::ranges::any_of(tests, [&](const std::string& test) { return is_about(test, preset); }))
        << "examples/presets/" << preset << ".yaml has no test: write TEST_F(Presets, " << title(preset) << "...)";
  }
}

TEST_F(Presets, TwitterGivesAUserThreeHundredInFifteenMinutes) {
  expect({.user = "42"}, {Algorithm::fixed_window, 300, "user: 300/15min", 15min, 15min});
  expect_room_for({.user = "43"});
  EXPECT_EQ(ask({.ip = "192.0.2.1"}).why, Why::no_rule);
}

TEST_F(Presets, GithubGivesMoreToAUserThanToAnAddress) {
  expect({.user = "42", .ip = "192.0.2.1"}, {Algorithm::sliding_window, 5000, "user: 5000/hour", 1h + 1us, 2h});
  EXPECT_EQ(ask({.user = "42", .ip = "192.0.2.1"}).limits.size(), 1U) << "a user is not held by an address";
  go_on_to_a_full(1h);
  expect({.ip = "192.0.2.1"}, {Algorithm::sliding_window, 60, "anonymous: 60/hour", 1h + 1us, 2h});
  expect_room_for({.user = "43", .ip = "192.0.2.1"});
  expect_room_for({.ip = "192.0.2.2"});
  expect_no_room_for({.api_key = "key", .ip = "192.0.2.1"});
  EXPECT_EQ(ask({.ip = "192.0.2.1"}).limits.size(), 1U);
}

TEST_F(Presets, StripeLetsASecondsWorthPassAtOnceAndThenRefillsEvenly) {
  expect({.tenant = "acct_1"}, {Algorithm::token_bucket, 100, "account: 100/second", 10ms, 1s});
  expect_room_for({.tenant = "acct_2"});
}

TEST_F(Presets, GoogleMapsGivesAProjectFiftyASecondAndNoMoreAtItsTurn) {
  expect({.tenant = "project"}, {Algorithm::sliding_window, 50, "project: 50/second", 1s + 1us, 2s});
  expect_room_for({.tenant = "other"});
}

TEST_F(Presets, AwsApiGatewayHoldsABurstOfHalfASecond) {
  expect({.tenant = "account"}, {Algorithm::token_bucket, 5000, "account: 10000/second burst 5000", 100us, 500ms});
  expect_room_for({.tenant = "other"});
  int count = 0;  // evenly spread requests get the whole rate
  go_on(500ms);
  for (int i = 0; i < 10'000; ++i, go_on(100us)) count += ask({.tenant = "account"}).allowed ? 1 : 0;
  EXPECT_EQ(count, 10'000);
}

TEST_F(Presets, DiscordGivesABotFiftyASecond) {
  expect({.api_key = "token", .path = "/channels/1"}, {Algorithm::fixed_window, 50, "bot: 50/second", 1s, 1s});
  EXPECT_FALSE(ask({.api_key = "token", .path = "/guilds/2"}).allowed) << "the limit is over all routes";
  expect_room_for({.api_key = "another"});
  EXPECT_EQ(ask({.user = "42"}).why, Why::no_rule);
}

TEST_F(Presets, CloudflareCountsAnAddressByTwoWindows) {
  expect({.ip = "192.0.2.1", .path = "/api/items"},
         {Algorithm::sliding_window, 100, "api: 100/minute", 1min + 1us, 2min});
  expect_room_for({.ip = "192.0.2.2", .path = "/api/items"});
  expect_no_room_for({.user = "42", .ip = "192.0.2.1", .path = "/api/items"});
  go_on_to_a_full(1min);
  go_on(30s);  // half of the minute before has faded
  EXPECT_EQ(passed(100, {.ip = "192.0.2.1", .path = "/api/items"}), 50);
  EXPECT_EQ(passed(500, {.ip = "192.0.2.1", .path = "/about"}), 500);
}

TEST_F(Presets, NginxDelaysAQueueOrPassesWithoutDelay) {
  for (int i = 0; i < 21; ++i) {
    const Answer page = ask({.ip = "192.0.2.1", .path = "/"});
    EXPECT_TRUE(page.allowed);
    EXPECT_EQ(page.limits[0].decision.delay, Micros{i * 100ms});
    const Answer api = ask({.ip = "192.0.2.1", .path = "/api/items"});
    EXPECT_TRUE(api.allowed);
    EXPECT_EQ(api.limits[0].decision.delay, Micros{0});
  }
  EXPECT_FALSE(ask({.ip = "192.0.2.1", .path = "/"}).allowed);
  go_on(3s);
  expect({.ip = "192.0.2.1", .path = "/"}, {Algorithm::leaky_bucket, 21, "pages: 10/s burst 21", 100ms, 2100ms});
  expect_no_room_for({.user = "42", .ip = "192.0.2.1", .path = "/"});
  expect_room_for({.ip = "192.0.2.2", .path = "/"});
  const Request api{.ip = "192.0.2.1", .path = "/api/items"};
  expect(api, {Algorithm::leaky_meter, 21, "api-nodelay: 10/s burst 21", 100ms, 2100ms});
  expect_no_room_for({.user = "42", .ip = "192.0.2.1", .path = "/api/items"});
  expect_room_for({.ip = "192.0.2.2", .path = "/api/items"});
}

TEST_F(Presets, EnvoyHasOneBucketForTheProxyAndOneForEachDescriptor) {
  const Attribute one[] = {{"client_id", "one"}}, two[] = {{"client_id", "two"}};
  expect({.entries = one}, {Algorithm::token_bucket, 10, "client: 60/minute burst 10", 1s, 10s});
  expect_room_for({.entries = two});
  go_on(1min);
  expect({.path = "/"}, {Algorithm::token_bucket, 10'000, "proxy: 1000/s burst 10000", 1ms, 10s});
}

TEST_F(Presets, KongHoldsASecondAMinuteAndAnHour) {
  const Request request{.user = "42"};
  expect(request, {Algorithm::fixed_window, 5, "consumer: 5/second", 1s, 1s});
  expect_room_for({.user = "43"});
  go_on_to_a_full(1h);
  std::string denied_by;
  int count = 0;
  for (int minute = 0; minute < 11; ++minute) {
    int in_minute = 0;
    for (int second = 0; second < 60; ++second, go_on(1s)) {
      in_minute += passed(5, request);
      if (second == 59) denied_by = binding(ask(request));
    }
    EXPECT_EQ(in_minute, minute < 10 ? 100 : 0);
    EXPECT_EQ(denied_by, minute < 9 ? "consumer: 100/minute" : "consumer: 1000/hour");
    count += in_minute;
  }
  EXPECT_EQ(count, 1000);
  EXPECT_EQ(ask(request).retry_after, Micros{49min});
  go_on_to_a_full(1h);
  expect({.ip = "192.0.2.1"}, {Algorithm::fixed_window, 5, "consumer: 5/second", 1s, 1s});
}

TEST_F(Presets, PublicApiGivesMoreToWhoHasAKey) {
  expect({.api_key = "key", .ip = "192.0.2.1"},
         {Algorithm::sliding_window, 100, "client: 100/minute", 1min + 1us, 2min});
  expect_room_for({.user = "42", .ip = "192.0.2.9"});
  go_on_to_a_full(1min);
  expect({.ip = "192.0.2.1"}, {Algorithm::sliding_window, 20, "anonymous: 20/minute", 1min + 1us, 2min});
  expect_room_for({.api_key = "another", .ip = "192.0.2.1"});
  expect_room_for({.ip = "192.0.2.2"});
  expect_no_room_for({.user = "42", .ip = "192.0.2.1"});
  EXPECT_EQ(ask({.ip = "192.0.2.1"}).limits.size(), 1U);
}

TEST_F(Presets, PaymentsAreNeverOneTooManyInAnyMinuteOrDay) {
  const Request pay{.user = "42", .method = "POST", .path = "/payments/cards"};
  expect(pay, {Algorithm::sliding_log, 5, "payments: 5/minute", 1min, 1min});  // 11 have passed
  int count = 11;
  for (int minute = 0; minute < 21; ++minute, go_on(1min)) count += passed(2, pay);
  EXPECT_EQ(count, 50);
  const Answer denied = ask(pay);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(binding(denied), "payments: 50/day");
  go_on(denied.retry_after);
  EXPECT_EQ(passed(6, pay), 5) << "the first five are a day old";
  const Answer nobody = ask({.method = "POST", .path = "/payments/cards"});
  EXPECT_EQ(nobody.why, Why::missing);
  EXPECT_EQ(nobody.missing, "user");
  EXPECT_EQ(passed(100, {.user = "42", .method = "GET", .path = "/payments/cards"}), 100);
  EXPECT_EQ(gate.policy().rules[0].on_backend_error, OnBackendError::closed);
}

TEST_F(Presets, UploadsAreHeldByTheirNumberAndTheirBytes) {
  const Attribute small[] = {{"Content-Length", "1000"}}, large[] = {{"Content-Length", "400000000"}},
                  huge[] = {{"Content-Length", "5000000000"}};
  const auto upload = [](std::string_view user, std::span<const Attribute> headers) {
    return Request{.user = user, .method = "POST", .path = "/uploads/photos", .headers = headers};
  };
  expect(upload("1", small), {Algorithm::token_bucket, 30, "files: 10/minute burst 30", 6s, 3min});
  EXPECT_EQ(passed(3, upload("2", large)), 2);
  const Answer denied = ask(upload("2", large));
  EXPECT_EQ(binding(denied), "bytes: 1000000000/hour");
  EXPECT_EQ(denied.binding_limit()->limit->algorithm, Algorithm::token_bucket);
  EXPECT_EQ(denied.retry_after, Micros{720s}) << "200 MB are missing, at 1 GB an hour";
  EXPECT_EQ(ask(upload("3", huge)).limits[1].decision.remaining, 0) << "more than an hour's worth is an hour's worth";
  EXPECT_EQ(ask(upload("4", {})).limits[1].decision.remaining, 990'000'000);
  EXPECT_EQ(ask({.ip = "192.0.2.1", .method = "PUT", .path = "/uploads/photos"}).limits.size(), 2U);
  EXPECT_EQ(ask({.user = "2", .method = "GET", .path = "/uploads/photos"}).why, Why::no_rule);
}

TEST_F(Presets, ChatHoldsAChannelAndAllChannelsTogether) {
  const auto say = [](std::string_view path) { return Request{.user = "42", .method = "POST", .path = path}; };
  expect(say("/channels/1/messages"), {Algorithm::token_bucket, 5, "channel: 1/s burst 5", 1s, 5s});
  go_on(1min);
  for (const char* path : {"/channels/1/messages", "/channels/2/messages", "/channels/3/messages"}) {
    EXPECT_EQ(passed(6, say(path)), 5);
  }
  EXPECT_EQ(passed(5, say("/channels/4/messages")), 5);
  EXPECT_EQ(denied_by(say("/channels/5/messages")), "person: 2/s burst 20");
  go_on(500ms);
  EXPECT_TRUE(ask(say("/channels/5/messages")).allowed);
  expect_room_for({.user = "43", .method = "POST", .path = "/channels/1/messages"});
  EXPECT_EQ(ask({.user = "42", .method = "GET", .path = "/channels/1/messages"}).why, Why::no_rule);
  EXPECT_EQ(ask({.ip = "192.0.2.1", .method = "POST", .path = "/channels/1/messages"}).why, Why::no_rule);
}

TEST_F(Presets, DatabaseWritesLeaveInAnEvenStream) {
  const Request write{.method = "PUT", .path = "/rows/1"};
  for (int i = 0; i < 200; ++i) EXPECT_EQ(ask(write).limits[0].decision.delay, Micros{i * 10ms});
  EXPECT_EQ(denied_by(write), "writes: 100/s burst 200");
  go_on(2s);
  expect(write, {Algorithm::leaky_bucket, 200, "writes: 100/s burst 200", 10ms, 2s});
  EXPECT_EQ(passed(1000, {.method = "GET", .path = "/rows/1"}), 1000) << "reads are not held";
}

TEST_F(Presets, WebhookDeliveryGivesEachReceiverAnEvenStream) {
  const Request hook{.host = "hooks.example.com"};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ask(hook).limits[0].decision.delay, Micros{i * 100ms});
  const Answer denied = ask(hook);
  EXPECT_EQ(binding(denied), "receiver: 10/s burst 100");
  EXPECT_EQ(denied.limits[0].decision.retry_after, Micros{100ms});
  Micros latest{0};
  for (int i = 0; i < 200; ++i) {
    const std::string other = std::to_string(i) + ".example.com";
    EXPECT_EQ(ask({.host = other}).limits[0].decision.delay, Micros{0}) << "a slow one holds up no other";
    EXPECT_EQ(passed(99, {.host = other}), 99);
    const Micros wait = ask({.host = other}).retry_after;
    EXPECT_GE(wait, Micros{100ms});
    latest = std::max(latest, wait);
  }
  EXPECT_GT(latest, Micros{109'500us}) << "they should come apart, by up to a tenth of the wait";
  EXPECT_LE(latest, Micros{110ms});
  go_on(denied.retry_after);
  EXPECT_TRUE(ask(hook).allowed);
  go_on(10s);
  EXPECT_EQ(passed(101, hook), 100);
}

TEST_F(Presets, InternalServiceBeginsEachCallersMinuteAtAnotherTime) {
  EXPECT_EQ(passed(6001, {.user = "billing"}), 6000);
  const Answer denied = ask({.user = "billing"});
  EXPECT_EQ(binding(denied), "caller: 6000/minute");
  EXPECT_LE(denied.retry_after, Micros{1min});
  std::set<Micros> ends;
  for (int i = 0; i < 50; ++i) ends.insert(ask({.user = std::to_string(i)}).limits[0].decision.reset_after);
  EXPECT_GT(ends.size(), 5U);
  go_on(denied.retry_after);
  EXPECT_EQ(passed(6001, {.user = "billing"}), 6000);
  EXPECT_EQ(ask({.ip = "10.0.0.1"}).why, Why::missing);
}

TEST_F(Presets, LoginAttemptsAreHeldByAddressAndByAccount) {
  const auto attempt = [](std::string_view user, std::string_view ip) {
    return Request{.user = user, .ip = ip, .method = "POST", .path = "/login"};
  };
  expect(attempt("", "192.0.2.1"), {Algorithm::sliding_log, 5, "address: 5/5min", 5min, 5min});
  go_on(1h);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask(attempt("alice", "192.0.2." + std::to_string(10 + i))).allowed);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(denied_by(attempt("alice", "198.51.100.1")), "account: 10/hour");
  EXPECT_EQ(denied_by(attempt("bob", "198.51.100.1")), "address: 5/5min") << "what was denied counts, too";
  EXPECT_TRUE(ask(attempt("bob", "198.51.100.2")).allowed);
  go_on(1h);
  EXPECT_TRUE(ask(attempt("alice", "198.51.100.1")).allowed);
  EXPECT_EQ(ask({.user = "alice", .ip = "198.51.100.1", .method = "GET", .path = "/login"}).why, Why::no_rule);
  EXPECT_EQ(gate.policy().rules[0].on_backend_error, OnBackendError::closed);
  EXPECT_EQ(gate.policy().rules[1].limits[0].quota.algorithm, Algorithm::sliding_log);
}

TEST_F(Presets, DdosShieldHoldsAnAddressItsNetworkAndEverybody) {
  expect({.ip = "192.0.2.1"}, {Algorithm::fixed_window, 50, "address: 50/second", 1s, 1s});
  expect_no_room_for({.user = "42", .ip = "192.0.2.1"});
  for (const LimitAnswer& one : ask({.ip = "192.0.2.2"}).limits) {
    EXPECT_EQ(one.limit->algorithm, Algorithm::fixed_window);
  }
  int count = 0;
  go_on(1s);
  for (int i = 0; i < 20; ++i) count += passed(50, {.ip = "192.0.2." + std::to_string(i)});
  EXPECT_EQ(count, 500);
  EXPECT_EQ(denied_by({.ip = "192.0.2.99"}), "network: 500/second");
  expect_room_for({.ip = "198.51.100.1"});
  go_on(1s);
  EXPECT_TRUE(ask({.cost = 100'000}).allowed);
  EXPECT_EQ(denied_by({.ip = "198.51.100.1"}), "everyone: 100000/second");
  go_on(1s);
  expect_room_for({.ip = "198.51.100.1"});
}

TEST_F(Presets, FreeAndProCountFromMidnightToMidnight) {
  expect({.user = "1", .plan = "free"}, {Algorithm::fixed_window, 100, "free: 100/calendar_day", 12h, 24h});
  expect_room_for({.ip = "192.0.2.1"});
  EXPECT_EQ(ask({.ip = "192.0.2.1"}).limits.size(), 1U);
  EXPECT_EQ(ask({.user = "1", .plan = "free"}).limits.size(), 1U) << "one plan holds, not both";
  go_on(12h);  // noon again
  expect({.user = "2", .plan = "pro"}, {Algorithm::fixed_window, 10'000, "pro: 10000/calendar_day", 12h, 24h});
  expect_room_for({.user = "3", .plan = "pro"});
  EXPECT_EQ(ask({.ip = "192.0.2.1", .plan = "pro"}).limits.size(), 1U);
  EXPECT_EQ(passed(101, {.user = "3"}), 100) << "who is on no plan has the free one";
}

}  // namespace
}  // namespace weir
