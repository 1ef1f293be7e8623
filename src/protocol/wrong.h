// The error that request parsers return for invalid input.
//
// Pure; any thread may call it. Tested through the parsers, by check_json_test.cc and weir_commands_test.cc.
#pragma once

#include <string>
#include <utility>

#include "weir/result.h"

namespace weir {

inline tl::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace weir
