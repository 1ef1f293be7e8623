// Targets of HTTP requests: the path, the parameters of the query, percent-decoded.
//
// A `+` is a plus. Pure; any thread. Tested by query_test.cc.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kQueryParametersMax = 100;

struct Parameter {
  std::string name;
  std::string value;
};

struct Target {
  std::string_view path;
  std::string_view query;  // without its ?
};

// A proxy may send the whole address, http://host/path, of which the host is its own affair.
Target split_target(std::string_view target);

// Nothing if a % is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text);

Result<std::vector<Parameter>> parse_query(std::string_view query);

}  // namespace weir
