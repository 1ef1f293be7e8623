// The id of a check that may be sent twice, bound to what it charges: to the limiter, ids are one crowd, and one that
// was used for somebody must not free a request of somebody else.
//
// What is bound is written behind each other with lengths, so that no two are the same text. If that is too long for an
// id, a hash stands for it. It is the same in every run: ids outlive a restart. Reservations keep theirs,
// which their clients are told. What is no id stays as it is, and the limiter says what is wrong with it. Pure; any
// thread. Tested by bound_id_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/quota.h"
#include "weir/request.h"

namespace weir {

// Of a check with a limit of its own.
std::string bound_id(std::string_view id, std::string_view key, Algorithm algorithm);

// Of a check by the rules. Headers and the cost are not bound: they may differ when a request is sent again.
std::string bound_id(std::string_view id, const Request& request);

}  // namespace weir
