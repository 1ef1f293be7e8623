// The names of the algorithms. For an unknown name, the error suggests the algorithm that was probably meant.
// Declared in weir/quota.h; any thread. Tested by quota_test.cc.
#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "base/nearest.h"
#include "weir/quota.h"

namespace weir {
namespace {

// In the order of Algorithm.
constexpr auto kNames = std::to_array<std::string_view>(
    {"fixed_window", "sliding_log", "sliding_window", "token_bucket", "leaky_bucket", "leaky_meter", "concurrency"});
static_assert(kNames.size() == std::size(kAlgorithms));

// Other common names of these algorithms.
struct OtherName {
  std::string_view name;
  Algorithm algorithm;
};
constexpr OtherName kOtherNames[] = {
    {"gcra", Algorithm::token_bucket},
    {"token", Algorithm::token_bucket},
    {"leaky", Algorithm::leaky_bucket},
    {"log", Algorithm::sliding_log},
    {"sliding", Algorithm::sliding_window},
    {"sliding_counter", Algorithm::sliding_window},
    {"sliding_window_counter", Algorithm::sliding_window},
    {"sliding_window_log", Algorithm::sliding_log},
    {"fixed", Algorithm::fixed_window},
    {"fixed_window_counter", Algorithm::fixed_window},
    {"calendar", Algorithm::fixed_window},
    {"concurrent", Algorithm::concurrency},
    {"semaphore", Algorithm::concurrency},
};

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  const auto place = static_cast<std::size_t>(algorithm);
  return place < kNames.size() ? kNames[place] : "?";
}

Result<Algorithm> parse_algorithm(std::string_view name) {
  if (const auto known = std::ranges::find(kNames, name); known != kNames.end()) {
    return kAlgorithms[known - kNames.begin()];
  }
  std::string plain = base::lower(name.substr(0, base::kWordMax));
  std::ranges::replace_if(
      plain, [](char c) { return c == '-' || c == ' ' || c == '.'; }, '_');
  const auto* other = std::ranges::find(kOtherNames, std::string_view(plain), &OtherName::name);
  const std::string_view meant =
      other != std::end(kOtherNames) ? to_string(other->algorithm) : base::nearest(plain, kNames);
  std::string message = "unknown algorithm " + base::in_quotes(name);
  if (!meant.empty()) return fail(ErrorCode::invalid_argument, message + "; did you mean " + std::string(meant) + "?");
  message += "; the algorithms are ";
  for (const std::string_view known : kNames) {
    message += std::string(known) + (known == kNames.back() ? "" : known == kNames[kNames.size() - 2] ? " and " : ", ");
  }
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace weir
