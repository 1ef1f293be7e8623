// One POST of JSON over plain HTTP/1.1, for whoever can wait: the sender of traces.
//
// Every wait has an end, and ends soon once `is_ending` is set; only the resolver's own is not ours to bound. Any
// thread. Tested by traces_test.cc and tests/server/traces.sh.
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

// What the field Host says: an address of IPv6 stands in brackets.
std::string host_field(const PostTarget& target);

// The status of the answer.
Result<int> post_json(const PostTarget& target, const std::string& body, const std::atomic<bool>& is_ending);

}  // namespace weir
