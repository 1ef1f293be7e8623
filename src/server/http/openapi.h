// The OpenAPI 3.1 document of the HTTP port, as GET /openapi.json serves it.
//
// Any thread. Tested by openapi_test.cc.
#pragma once

#include <string_view>

namespace weir {

std::string_view openapi_document();

}  // namespace weir
