// Declares flags as all commands do: with a placeholder for the value, a check, and the default in the help.
//
// One thread. Tested by tests/server/cli.sh and commands.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "base/nearest.h"
#include "base/text.h"
#include "control/control.h"

namespace weir::cli {

inline constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 44;

// Replaces CLI11's own check, which reports `1M` as out of range.
inline auto whole_number_to(std::uint64_t most, std::uint64_t least = 1) {
  return [most, least](const std::string& text) -> std::string {
    const auto value = base::to_number<std::uint64_t>(text);
    if (value && *value >= least && *value <= most) return {};
    return base::in_quotes(text) + " is not a whole number from " + std::to_string(least) + " to " +
           std::to_string(most);
  };
}

// Checks how long a change is to be in effect. An empty text is refused, too: the change would otherwise never end.
inline std::string why_not_lasting(const std::string& text) {
  const auto lasts = control::parse_lasting(text);
  return lasts ? std::string() : lasts.error().message;
}

// A flag with a text. An empty default is not shown.
inline CLI::Option* text_flag(CLI::App& app, const char* name, std::string& value, const char* type,
                              const char* about) {
  return app.add_option(name, value, about)->type_name(type)->capture_default_str();
}

struct Within {
  std::uint64_t least = 1, most = 0;
};

// A flag with a whole number. A default of 0 is not shown: it stands for what `about` says.
template <class Number>
CLI::Option* number_flag(CLI::App& app, const char* name, Number& value, Within within, const char* type,
                         const char* about) {
  auto* const option = app.add_option(name, value, about)->type_name(type);
  option->check(whole_number_to(within.most, within.least));
  return value == 0 ? option : option->capture_default_str();
}

}  // namespace weir::cli
