// Splits the target of an HTTP request into path and query parameters, and percent-decodes them.
//
// A `+` stays a plus. Pure; any thread may call it. Tested by query_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "weir/result.h"

namespace weir::protocol {

inline constexpr std::size_t kQueryParametersMax = 100;

struct Parameter {
  std::string name;
  std::string value;
};

struct Target {
  std::string_view path;
  std::string_view query;  // without the `?`
};

// Accepts an absolute target, http://host/path, as proxies may send it, and ignores its host.
Target split_target(std::string_view target);

Result<std::vector<Parameter>> parse_query(std::string_view query);

}  // namespace weir::protocol
