// Fuzzes the rows of a plans' database: whatever the bytes are, a row is refused with words that are short and
// printable, or its limits can be charged by every rule that goes by plans.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "control/plan_judge.h"
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

// Up to the next separator; nothing if it begins with another, which stands for NULL.
std::optional<std::string> field(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\x1f'), rest.size());
  const std::string_view text = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (text.starts_with('\x1e')) return {};
  return std::string(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Policy policy = *parse_policy(R"(
plans: {default: free, tiers: {free: 100/minute, pro: [10/second, 1000/minute]}}
rules:
  - {name: windows, per: user, limit: plan, algorithm: fixed_window}
  - {name: bucket, per: user, limit: plan, algorithm: token_bucket}
)",
                                             "p");
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  PlanRow row{.subject = "user:42", .has_plan = size % 2 == 0, .has_override = true};
  row.plan = field(rest);
  row.limits = field(rest);
  row.until = field(rest);
  const auto judged = judge_row(policy, row);
  if (!judged) {
    const std::string& message = judged.error().message;
    WEIR_ASSERT(!message.empty() && message.size() < 700);
    WEIR_ASSERT(std::ranges::all_of(message, [](char c) { return c >= 0x20 && c < 0x7f; }));
    return 0;
  }
  const auto clock = std::make_shared<ManualClock>(Micros{1'789'992'000'000'000});
  Limiter limiter({.clock = clock, .keys = 100, .sweeping = Sweeping::by_hand});
  Gate gate(limiter);
  WEIR_ASSERT(gate.use_plans(std::make_shared<OnePlan>(
      PlanTerms{.plan = judged->plan, .instead = std::make_shared<const std::string>(judged->instead)})));
  WEIR_ASSERT(gate.apply(policy, Force::yes));
  const auto answer = gate.check({.user = "42"});
  WEIR_ASSERT(answer && answer->allowed && answer->limits.size() >= 2);
  return 0;
}
