// What a caller knows of a request: its attributes and its cost. Rules are matched against it.
//
// Views only: all of it must outlive the call that it is given to. What is empty is not known. `ip` is the address of
// the peer as the caller sees it; who stands behind a trusted proxy is found in the headers. Tested through the tests
// of src/policy.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir {

struct Attribute {
  std::string_view name;
  std::string_view value;
};

struct Request {
  std::string_view user{};
  std::string_view api_key{};
  std::string_view ip{};
  std::string_view tenant{};
  std::string_view plan{};
  std::string_view method{};
  std::string_view host{};
  std::string_view path{};               // with its query, as the client sent it
  std::span<const Attribute> headers{};  // in their order; names in any case
  std::span<const Attribute> entries{};  // anything else: descriptor entries
  std::int64_t cost = 1;                 // 0 asks only, negative gives back
};

}  // namespace weir
