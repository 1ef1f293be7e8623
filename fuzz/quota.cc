// Fuzzes the parser of limits such as 100/minute, with each algorithm: it returns a quota that is the same after
// printing and parsing it, or a short, printable error that suggests a valid quota.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "algorithm/limit.h"
#include "fuzz.h"
#include "weir/quota.h"

namespace {

using namespace weir;

void check_error(const Error& error, std::optional<Algorithm> algorithm) {
  const std::string& message = error.message;
  WEIR_ASSERT(message.size() < 420);
  WEIR_ASSERT(std::ranges::all_of(message, [](char c) { return c >= 0x20 && c < 0x7f; }));
  WEIR_ASSERT(message.starts_with("column " + std::to_string(error.column) + ": "));
  for (const std::string_view lead : {"; did you mean ", "; write it like "}) {
    const std::size_t at = message.rfind(lead);
    if (at == std::string::npos) continue;
    std::string offered = message.substr(at + lead.size());
    if (offered.ends_with('?')) offered.pop_back();
    WEIR_ASSERT(parse_quota(offered, algorithm).has_value());
    return;
  }
  assertion_failed("every error suggests a quota", __FILE__, __LINE__);
}

}  // namespace

void fuzz(std::string_view text) {
  std::optional<Algorithm> algorithm;
  for (std::size_t i = 0; i <= std::size(kAlgorithms); ++i) {
    if (i > 0) algorithm = kAlgorithms[i - 1];
    const auto quota = parse_quota(text, algorithm);
    if (!quota) {
      check_error(quota.error(), algorithm);
      continue;
    }
    const auto again = parse_quota(to_string(*quota), quota->algorithm);
    WEIR_ASSERT(again.has_value());
    WEIR_ASSERT(*again == *quota);
    if (!quota->calendar) static_cast<void>(algorithm::compile_limit(*quota, nullptr));
  }
  static_cast<void>(parse_algorithm(text));
}
