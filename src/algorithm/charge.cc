// Validates keys, with one error text for the library and every protocol. Any thread. Declared in weir/verdict.h;
// tested by limiter_test.cc and by each protocol's tests.

#include <string>

#include "weir/verdict.h"

namespace weir {

std::optional<Error> refuse_key(std::string_view key, std::size_t bytes_max) {
  if (key.empty()) {
    return Error{ErrorCode::invalid_argument, "the key is empty; name what is to be limited, such as user:42"};
  }
  if (key.size() <= bytes_max) return std::nullopt;
  return Error{ErrorCode::out_of_range, "the key has " + std::to_string(key.size()) + " bytes, at most " +
                                            std::to_string(bytes_max) + " are accepted; send a hash of it instead"};
}

}  // namespace weir
