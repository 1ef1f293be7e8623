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
  switch (algorithm) {
    case Algorithm::fixed_window:
      return "fixed_window";
    case Algorithm::sliding_log:
      return "sliding_log";
    case Algorithm::sliding_window:
      return "sliding_window";
    case Algorithm::token_bucket:
      return "token_bucket";
    case Algorithm::leaky_bucket:
      return "leaky_bucket";
    case Algorithm::leaky_meter:
      return "leaky_meter";
    case Algorithm::concurrency:
      return "concurrency";
  }
  return "?";
}

Result<Algorithm> parse_algorithm(std::string_view name) {
  std::array<std::string_view, std::size(kAlgorithms)> names;
  std::ranges::transform(kAlgorithms, names.begin(), [](Algorithm a) { return to_string(a); });
  if (const auto known = std::ranges::find(names, name); known != names.end()) {
    return kAlgorithms[known - names.begin()];
  }
  std::string plain = lower(name.substr(0, kWordMax));
  std::ranges::replace_if(
      plain, [](char c) { return c == '-' || c == ' ' || c == '.'; }, '_');
  const auto* other = std::ranges::find(kOtherNames, std::string_view(plain), &OtherName::name);
  const std::string_view meant = other != std::end(kOtherNames) ? to_string(other->algorithm) : nearest(plain, names);
  std::string message = "unknown algorithm " + in_quotes(name);
  if (!meant.empty()) return fail(ErrorCode::invalid_argument, message + "; did you mean " + std::string(meant) + "?");
  message += "; the algorithms are ";
  for (const std::string_view known : names) {
    message += std::string(known) + (known == names.back() ? "" : known == names[names.size() - 2] ? " and " : ", ");
  }
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace weir
