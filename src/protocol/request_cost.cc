// The bound on the cost of a request. See request_cost.h.
#include "protocol/request_cost.h"

#include <string>

namespace weir {

std::optional<Error> refuse_cost(std::int64_t cost) {
  if (cost >= -kRequestCostMax && cost <= kRequestCostMax) return std::nullopt;
  return Error{ErrorCode::out_of_range,
               "a cost of " + std::to_string(cost) + " is out of range; the range is -2^53 to 2^53 (9007199254740992)"};
}

}  // namespace weir
