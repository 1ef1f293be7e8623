// Binds the idempotency id of a rules check to the request that came with it.
//
// The limiter binds an id to the keys and costs that it charges (once_name.h). That is not enough for a rule that
// counts all clients together: the id of one client must not make another client's request free. So the request's
// attributes are bound, too. Headers are left out, since they may differ in a retry. Headers that a rule counts by,
// or takes the cost from, are already part of keys and costs.
//
// Each bound part has its length as a prefix, so that two different requests never give the same text. If the text is
// too long for an id, a hash replaces it. The result is the same in every run, because ids outlive a restart.
// Reservations keep their id as it is, because their clients receive it. An invalid id is returned unchanged, and the
// limiter reports what is wrong with it. Pure; any thread. Tested by bound_id_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/request.h"

namespace weir::server::loop {

std::string bound_id(std::string_view id, const Request& request);

}  // namespace weir::server::loop
