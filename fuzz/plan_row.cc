// Fuzzes rows of the plan database: a row is refused with a short, printable error, or every rule with `limit: plan`
// can charge its limits.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "control/plan_control.h"
#include "fuzz.h"
#include "weir/gate.h"

namespace {

using namespace weir;

class OnePlan final : public Plans {
 public:
  explicit OnePlan(PlanTerms terms) : terms_(std::move(terms)) {}
  PlanTerms find(std::string_view) noexcept override { return terms_; }
  bool wait(std::string_view) noexcept override { return false; }

 private:
  const PlanTerms terms_;
};

// Removes a field, up to the next 0x1f, and returns it; nothing, for NULL, if the field begins with 0x1e.
std::optional<std::string> field(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\x1f'), rest.size());
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (text.starts_with('\x1e')) return {};
  return std::string(text);
}

}  // namespace

void fuzz(std::string_view input) {
  static const Policy policy = *parse_policy(R"(
plans: {default: free, tiers: {free: 100/minute, pro: [10/second, 1000/minute]}}
rules:
  - {name: windows, per: user, limit: plan, algorithm: fixed_window}
  - {name: bucket, per: user, limit: plan, algorithm: token_bucket}
)",
                                             "p");
  plans::PlanRow row{.subject = "user:42", .has_plan = input.size() % 2 == 0, .has_override = true};
  row.plan = field(input);
  row.limits = field(input);
  row.until = field(input);
  const auto checked = control::check_row(policy, row);
  if (!checked) {
    const std::string& message = checked.error().message;
    WEIR_ASSERT(!message.empty() && message.size() < 700);
    WEIR_ASSERT(std::ranges::all_of(message, [](char c) { return c >= 0x20 && c < 0x7f; }));
    return;
  }
  const auto clock = std::make_shared<ManualClock>(Micros{1'789'992'000'000'000});
  Limiter limiter({.clock = clock, .keys = 100, .sweeping = Sweeping::by_hand});
  Gate gate(limiter);
  WEIR_ASSERT(gate.use_plans(std::make_shared<OnePlan>(
      PlanTerms{.plan = checked->plan, .limits = std::make_shared<const std::string>(checked->instead)})));
  WEIR_ASSERT(gate.apply(policy, Force::yes));
  const auto answer = gate.check({.user = "42"});
  WEIR_ASSERT(answer && answer->allowed && answer->limits.size() >= 2);
}
