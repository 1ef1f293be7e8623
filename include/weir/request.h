// The attributes and the cost of a request, as the caller knows them. Rules match these.
//
// Views only: all of it must outlive the call that receives it. An empty attribute is unknown. `ip` is the peer's
// address as the caller sees it; the rules find the client behind a trusted proxy in the headers. Tested through the
// tests of src/policy.
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
  std::span<const Attribute> entries{};  // any other attributes: descriptor entries
  std::int64_t cost = 1;                 // 0 only looks, a negative cost refunds
};

}  // namespace weir
