// Bounds on what a request may ask for. See request_key.h.
#include "protocol/request_key.h"

#include <string>

namespace weir {

std::optional<Error> refuse_key(std::string_view key) {
  if (key.empty()) {
    return Error{ErrorCode::invalid_argument, "the key is empty; name what is to be limited, such as user:42"};
  }
  if (key.size() > kRequestKeyBytesMax) {
    return Error{ErrorCode::out_of_range, "the key has " + std::to_string(key.size()) + " bytes, at most " +
                                              std::to_string(kRequestKeyBytesMax) +
                                              " are accepted; send a hash of it instead"};
  }
  return std::nullopt;
}

std::optional<Error> refuse_cost(std::int64_t cost) {
  if (cost >= -kRequestCostMax && cost <= kRequestCostMax) return std::nullopt;
  return Error{ErrorCode::out_of_range,
               "a cost of " + std::to_string(cost) + " is beyond 2^53 (9007199254740992) in either direction"};
}

}  // namespace weir
