// Sends one POST of JSON over plain HTTP/1.1 and waits for the answer; the sender of traces uses it.
//
// Every wait is bounded and ends soon after `is_ending` is set, except for the resolver's own. Any thread. Tested by
// traces_test.cc and tests/server/traces.sh.
#pragma once

#include <atomic>
#include <string>

#include "weir/result.h"

namespace weir {

struct PostTarget {
  std::string host;  // a name or an address
  std::string port;
  std::string path;
};

// The value of the Host field; an IPv6 address is in brackets.
std::string host_field(const PostTarget& target);

// The status of the answer.
Result<int> post_json(const PostTarget& target, const std::string& body, const std::atomic<bool>& is_ending);

}  // namespace weir
