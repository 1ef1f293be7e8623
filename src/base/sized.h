// Joins several texts into one, each with its length in front, so that different lists never give the same result.
//
// Pure; any thread. Tested through bound_id_test.cc, rls_service_test.cc and envoy_rules_test.cc.
#pragma once

#include <string>
#include <string_view>

namespace weir {

inline void append_sized(std::string& out, std::string_view text) {
  out.append(std::to_string(text.size())).append(":").append(text);
}

}  // namespace weir
