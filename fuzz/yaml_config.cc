// Fuzzes the config parser: any bytes are a valid policy, or an error whose lines are printable, short and name a line
// and a column.
//
// A valid policy is the same after printing and parsing it. It can be reviewed and compared. A gate applies it and then
// answers requests.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "weir/gate.h"
#include "weir/policy.h"

namespace {

using namespace weir;

bool is_place(std::string_view line) {
  constexpr std::string_view kName = "fuzz:";
  if (!line.starts_with(kName)) return false;
  line.remove_prefix(kName.size());
  for (int i = 0; i < 2; ++i) {
    const std::size_t digits = line.find_first_not_of("0123456789");
    if (digits == 0 || digits == line.npos || line[digits] != ':' || line.starts_with('0')) return false;
    line.remove_prefix(digits + 1);
  }
  return line.size() > 1 && line.front() == ' ';
}

void check_error(const std::string& message) {
  WEIR_ASSERT(!message.empty());
  WEIR_ASSERT(std::ranges::all_of(message, [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n'; }));
  std::string_view rest = message;
  std::size_t lines = 0;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    WEIR_ASSERT(line.size() < 700);
    WEIR_ASSERT(is_place(line) || (rest.empty() && line.starts_with("fuzz: and ")));
    WEIR_ASSERT(++lines <= 51);
  }
}

void ask(Gate& gate) {
  const Attribute headers[] = {{"X-Forwarded-For", "10.0.0.1, 192.0.2.1"}, {"x-cost", "3"}, {"x-org", "a"}};
  const Attribute entries[] = {{"a", "b"}};
  const Request requests[] = {
      {},
      {.user = "a", .ip = "192.0.2.1", .path = "/"},
      {.user = "42",
       .api_key = "secret",
       .ip = "10.0.0.1",
       .tenant = "acme",
       .plan = "free",
       .method = "POST",
       .host = "api.example.com",
       .path = "/api/search?q=1",
       .headers = headers,
       .entries = entries,
       .cost = 2},
      {.ip = "2001:db8::1", .method = "GET", .path = "/users/1/orders/2"},
  };
  for (const Request& request : requests) {
    const auto answer = gate.check(request);
    if (!answer) {
      WEIR_ASSERT(answer.error().code == ErrorCode::exhausted);  // more limits than can be charged at once
      continue;
    }
    WEIR_ASSERT(answer->allowed == (answer->retry_after == Micros{0}));
    WEIR_ASSERT(answer->limits.empty() || answer->binding < answer->limits.size());
    WEIR_ASSERT(gate.explain(request).has_value());
  }
}

}  // namespace

void fuzz(std::string_view text) {
  auto policy = parse_policy(text, "fuzz");
  if (!policy) return check_error(policy.error().message);
  const auto again = parse_policy(to_yaml(*policy), "printed");
  WEIR_ASSERT(again.has_value());
  WEIR_ASSERT(*again == *policy);
  static_cast<void>(review(*policy, "fuzz", Micros{1'789'992'000'000'000}));
  WEIR_ASSERT(compare(*policy, *again).lines.empty());

  Limiter limiter({.clock = std::make_shared<ManualClock>(Micros{1'789'992'000'000'000}),
                   .keys = 1'000,
                   .sweeping = Sweeping::by_hand});
  Gate gate(limiter);
  WEIR_ASSERT(gate.apply(*std::move(policy)).has_value());
  ask(gate);
}
