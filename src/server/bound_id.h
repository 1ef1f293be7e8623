// The id of a check by the rules that may be sent twice, bound to the request that it came with.
//
// The limiter binds an id to the keys and costs that it charges (once_name.h). That is not enough where a rule counts
// all clients together: an id that one client has used must not free a request of another. So the attributes of the
// request are bound, too, but for its headers, which may differ when it is sent again; those that a rule counts by, or
// takes the cost from, are in keys and costs. What is bound is written behind each other with lengths, so that no two
// are the same text. If that is too long for an id, a hash stands for it. It is the same in every run: ids outlive a
// restart. Reservations keep theirs, which their clients receive. What is no id stays as it is, and the limiter says
// what is wrong with it. Pure; any thread. Tested by bound_id_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/request.h"

namespace weir {

std::string bound_id(std::string_view id, const Request& request);

}  // namespace weir
