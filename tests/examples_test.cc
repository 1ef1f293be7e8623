// Every config in examples/ is valid. weir.yaml and the two layers do what they say. No tenant can use permits of
// another tenant, whatever it sends. (presets_test.cc tests the presets.)
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "gate_fixture.h"
#include "seed.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

const std::string kExamples = WEIR_SOURCE_DIR "/examples/";

std::vector<std::string> example_files() {
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(kExamples)) {
    if (file.path().extension() == ".yaml") files.push_back(file.path().string());
  }
  std::ranges::sort(files);
  return files;
}

class Examples : public test::GateTest {
 protected:
  void use_example(const std::string& name) { use(test::read_file(kExamples + name)); }
  // Of each rule, in their order.
  std::string algorithms() {
    std::string out;
    for (const Rule& rule : gate.policy().rules) {
      out.append(out.empty() ? "" : ", ").append(rule.name + ' ').append(to_string(rule.limits[0].quota.algorithm));
    }
    return out;
  }
};

TEST_F(Examples, AreReadWithoutAnErrorOrAWarning) {
  const auto files = example_files();
  EXPECT_GE(files.size(), 23U);
  for (const std::string& file : files) {
    const auto policy = parse_policy(test::read_file(file), file);
    ASSERT_TRUE(policy) << policy.error().message;
    for (const std::string& line : review(*policy, file, Micros{kStart})) ADD_FAILURE() << line;
    const auto applied = gate.apply(*policy, Force::yes);
    EXPECT_TRUE(applied) << file << ": " << applied.error().message;
  }
}

TEST_F(Examples, ArePrintedAsATextThatMeansTheSame) {
  for (const std::string& file : example_files()) {
    const auto policy = parse_policy(test::read_file(file), file);
    ASSERT_TRUE(policy) << policy.error().message;
    const std::string printed = to_yaml(*policy);
    const auto again = parse_policy(printed, "printed.yaml");
    ASSERT_TRUE(again) << again.error().message << "\n" << printed;
    EXPECT_TRUE(*again == *policy) << file << " became\n" << printed;
  }
}

TEST_F(Examples, BeginWithACommentOfAFewLines) {
  for (const std::string& file : example_files()) {
    const std::string text = test::read_file(file);
    int lines = 0;
    for (std::size_t at = 0; text.substr(at, 2) == "# "; at = text.find('\n', at) + 1) ++lines;
    EXPECT_GE(lines, 2) << file;
    EXPECT_LE(lines, 5) << file;
  }
}

TEST_F(Examples, HoldSearchesUploadsAndLoginsByTheSketch) {
  use_example("weir.yaml");
  const Request search{.api_key = "key", .ip = "192.0.2.1", .path = "/api/search?q=weir"};
  EXPECT_EQ(passed(101, search), 100);
  EXPECT_EQ(denied_by(search), "search: 100/minute");
  EXPECT_FALSE(ask({.api_key = "key", .ip = "192.0.2.9", .path = "/api/search"}).allowed);
  const Answer other = ask({.api_key = "other", .ip = "192.0.2.1", .path = "/api/search"});
  EXPECT_TRUE(other.allowed);
  ASSERT_EQ(other.limits.size(), 3U) << "everyone, address and search; not the rest";
  EXPECT_EQ(other.limits[2].rule, "search");
  const Request upload{.api_key = "key", .ip = "192.0.2.1", .path = "/API/upload/"};
  EXPECT_EQ(passed(11, upload), 10);
  EXPECT_EQ(denied_by(upload), "upload: 10/hour");
  EXPECT_FALSE(ask({.api_key = "key", .ip = "192.0.2.9", .path = "/api/upload"}).allowed);
  EXPECT_TRUE(ask({.api_key = "other", .ip = "192.0.2.1", .path = "/api/upload"}).allowed);

  const Request login{.ip = "192.0.2.2", .method = "POST", .path = "/api/login"};
  EXPECT_EQ(passed(6, login), 5);
  const Answer denied = ask(login);
  EXPECT_EQ(binding(denied), "login: 5/5min");
  EXPECT_EQ(denied.retry_after, Micros{5min});
  EXPECT_FALSE(ask({.api_key = "key", .ip = "192.0.2.2", .method = "POST", .path = "/api/login"}).allowed);
  EXPECT_TRUE(ask({.ip = "192.0.2.3", .method = "POST", .path = "/api/login"}).allowed);
  go_on(5min - 1us);
  EXPECT_FALSE(ask(login).allowed);
  go_on(1us);
  EXPECT_TRUE(ask(login).allowed);
}

TEST_F(Examples, HoldAUserByStepsAndAnAddressByTheMinuteInTheSketch) {
  use_example("weir.yaml");
  EXPECT_EQ(passed(11, {.user = "42", .ip = "192.0.2.1", .path = "/"}), 10);
  EXPECT_EQ(denied_by({.user = "42", .ip = "192.0.2.1", .path = "/"}), "steps: 10/second");
  EXPECT_EQ(passed(591, {.ip = "192.0.2.1", .path = "/"}), 590);
  EXPECT_EQ(denied_by({.ip = "192.0.2.1", .path = "/"}), "address: 600/minute");
  EXPECT_EQ(ask({.ip = "192.0.2.1", .path = "/health"}).why, Why::skipped);
  const Attribute behind[] = {{"X-Forwarded-For", "192.0.2.1"}};
  EXPECT_FALSE(ask({.ip = "10.1.2.3", .path = "/", .headers = behind}).allowed) << "the proxy is trusted";
  EXPECT_FALSE(ask({.ip = "192.0.2.1", .path = "/", .headers = behind}).allowed);

  int count = 0;  // a client that comes by many addresses
  for (int i = 0; i < 1100; ++i) {
    count += ask({.api_key = "key", .ip = "198.51.100." + std::to_string(i % 200), .path = "/"}).allowed ? 1 : 0;
  }
  EXPECT_EQ(count, 1000);
  EXPECT_EQ(denied_by({.api_key = "key", .ip = "203.0.113.1", .path = "/"}), "rest: 1000/minute");
}

TEST_F(Examples, HoldAUserByTheMinuteAndTheHourInTheSketch) {
  use_example("weir.yaml");
  EXPECT_EQ(algorithms(),
            "everyone fixed_window, address fixed_window, search sliding_window, upload sliding_window, "
            "login sliding_log, steps sliding_window, rest sliding_window");
  const auto spend = [&](int seconds, std::string_view user) {
    int count = 0;
    for (int i = 0; i < seconds; ++i, go_on(2s)) count += passed(10, {.user = user, .path = "/"});
    return count;
  };
  EXPECT_EQ(spend(12, "1"), 100);
  EXPECT_EQ(denied_by({.user = "1", .path = "/"}), "steps: 100/minute");
  int count = 100;
  for (int pause = 0; pause < 20; ++pause) {
    go_on(2min);
    count += spend(11, "1");
  }
  EXPECT_EQ(count, 1000);
  EXPECT_EQ(denied_by({.user = "1", .path = "/"}), "steps: 1000/hour");

  // What steps denies still counts as an attempt to log in.
  EXPECT_EQ(passed(5, {.user = "1", .ip = "192.0.2.1", .method = "POST", .path = "/api/login"}), 0);
  EXPECT_EQ(denied_by({.ip = "192.0.2.1", .method = "POST", .path = "/api/login"}), "login: 5/5min");
  EXPECT_TRUE(ask({.cost = 500'000}).allowed);
  EXPECT_EQ(denied_by({.ip = "192.0.2.1", .path = "/"}), "everyone: 500000/second");
}

TEST_F(Examples, HoldEveryoneAndEachAddressAtTheGateway) {
  use_example("layers/gateway.yaml");
  EXPECT_EQ(algorithms(), "everyone fixed_window, address fixed_window");
  EXPECT_EQ(passed(601, {.ip = "192.0.2.1"}), 600);
  const Answer denied = ask({.ip = "192.0.2.1"});
  EXPECT_EQ(binding(denied), "address: 600/minute");
  EXPECT_EQ(denied.retry_after, Micros{1min});
  EXPECT_FALSE(ask({.user = "42", .ip = "192.0.2.1"}).allowed);
  EXPECT_TRUE(ask({.ip = "192.0.2.2"}).allowed);
  go_on(1min);
  EXPECT_TRUE(ask({.cost = 499'999}).allowed);
  EXPECT_TRUE(ask({.ip = "192.0.2.1"}).allowed);
  EXPECT_EQ(denied_by({.ip = "192.0.2.2"}), "everyone: 500000/second");
  EXPECT_EQ(ask({.ip = "192.0.2.2", .path = "/health"}).why, Why::skipped);
  go_on(1s);
  EXPECT_TRUE(ask({.ip = "192.0.2.2"}).allowed);
}

TEST_F(Examples, HoldATenantItsUsersAndItsEndpointsInTheService) {
  use_example("layers/service.yaml");
  EXPECT_EQ(algorithms(), "tenant sliding_window, user token_bucket, endpoint sliding_window");
  const Request user{.user = "42", .tenant = "acme", .path = "/api/other"};
  EXPECT_EQ(passed(51, user), 50);
  EXPECT_EQ(denied_by(user), "user: 10/second burst 50");
  EXPECT_EQ(ask(user).retry_after, Micros{100ms});
  go_on(100ms);
  EXPECT_EQ(passed(2, user), 1);

  EXPECT_EQ(passed(601, {.tenant = "acme", .path = "/api/search"}), 600);
  EXPECT_EQ(denied_by({.tenant = "acme", .path = "/api/search"}), "endpoint: 600/minute");
  EXPECT_EQ(passed(300, {.tenant = "acme", .path = "/api/orders/1"}), 300);
  EXPECT_EQ(passed(301, {.tenant = "acme", .path = "/api/orders/2"}), 300) << "a template is one endpoint";
  EXPECT_TRUE(ask({.tenant = "acme", .path = "/api/reports/2026/09"}).allowed);

  EXPECT_EQ(passed(9'000, {.tenant = "acme", .path = "/api/other"}), 10'000 - 51 - 600 - 600 - 1);
  EXPECT_EQ(denied_by({.tenant = "acme", .path = "/api/other"}), "tenant: 10000/minute");
  const Answer nobody = ask({.user = "42", .path = "/api/other"});
  EXPECT_EQ(nobody.why, Why::missing);
  EXPECT_EQ(nobody.missing, "tenant");
}

std::string shown(const Result<Answer>& answer) {
  return answer ? test::shown(*answer) : "error: " + answer.error().message;
}

template <std::size_t size>
std::string_view one_of(std::mt19937_64& random, const std::array<std::string_view, size>& values) {
  return values[static_cast<std::size_t>(test::pick(random, 0, static_cast<std::int64_t>(size) - 1))];
}

constexpr std::array<std::string_view, 7> kPaths = {
    "/api/search", "/api/orders/1", "/api/orders/2", "/api/reports/a/b", "/API//search", "/x", ""};
constexpr std::array<std::string_view, 4> kAddresses = {"192.0.2.1", "198.51.100.7", "2001:db8::1", ""};

// How many answers to tenant b differ between a limiter that tenant a uses, too, and one that it does not use.
int differences(const Policy& policy, Micros start, std::mt19937_64 random) {
  // Users that look like parts of keys: joined to the name of their tenant, some would be users of another tenant.
  static const std::string long_user(700, 'u'), glued = std::string("\1b\1") + "1";
  const std::array<std::string_view, 8> users = {"", "1", "2", "b", "b1", glued, "a", long_user};
  const auto clock = std::make_shared<ManualClock>(start);
  test::GateWorld both(clock), alone(clock);
  EXPECT_TRUE(both.gate.apply(policy) && alone.gate.apply(policy));
  int different = 0;
  for (int i = 0; i < 20'000; ++i) {
    const bool is_a = test::pick(random, 0, 3) > 0;
    Request request{.user = one_of(random, users),
                    .ip = one_of(random, kAddresses),
                    .tenant = is_a ? "a" : "b",
                    .path = one_of(random, kPaths)};
    const std::int64_t kind = test::pick(random, 0, 9);
    if (is_a && kind == 0) request.cost = test::pick(random, INT64_MIN, INT64_MAX);
    if (kind == 1) request.cost = test::pick(random, -20, 100);
    const std::string with = shown(both.gate.check(request));
    if (!is_a) different += with == shown(alone.gate.check(request)) ? 0 : 1;
    const Micros pause{test::pick(random, 0, 2) > 0 ? 0 : test::pick(random, 0, 50'000)};
    clock->advance(pause);
  }
  return different;
}

TEST_F(Examples, KeepTheBudgetOfATenantFromAllOthersInTheService) {
  use_example("layers/service.yaml");
  EXPECT_EQ(differences(gate.policy(), Micros{kStart}, test::seeded()), 0);
}

// The test above can fail: without the tenant in the key of any rule, tenants share permits.
TEST_F(Examples, NeedTheTenantInEveryKeyOfTheService) {
  use_example("layers/service.yaml");
  const std::mt19937_64 random = test::seeded();
  for (std::size_t i = 0; i < gate.policy().rules.size(); ++i) {
    Policy without = gate.policy();
    EXPECT_EQ(std::erase(without.rules[i].per, Dimension{AttributeKind::tenant}), 1U) << without.rules[i].name;
    EXPECT_GT(differences(without, Micros{kStart}, random), 0) << without.rules[i].name;
  }
}

}  // namespace
}  // namespace weir
