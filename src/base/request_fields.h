// The attributes of a request that have one value and no name of their own, in the order of AttributeKind.
//
// Pure; any thread. Tested through weir_commands_test.cc and overlay_test.cc.
#pragma once

#include <array>
#include <string_view>

#include "weir/request.h"

namespace weir::base {

struct RequestField {
  std::string_view name;
  std::string_view Request::*value;
};

inline constexpr std::array<RequestField, 8> kRequestFields = {{{"user", &Request::user},
                                                                {"api_key", &Request::api_key},
                                                                {"ip", &Request::ip},
                                                                {"tenant", &Request::tenant},
                                                                {"plan", &Request::plan},
                                                                {"method", &Request::method},
                                                                {"host", &Request::host},
                                                                {"path", &Request::path}}};

}  // namespace weir::base
