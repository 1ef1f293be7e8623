// The bodies of admin calls: a JSON object of few members, each known by its name.
//
// Strict: an unknown or repeated member is an error, because a misspelt "for" would be a change that never ends. What
// names a request, as in POST /v1/check, is handed on as it is. One thread. Tested by admin_api_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/json_reader.h"
#include "weir/result.h"

namespace weir {

struct AdminMember {
  enum class Type : std::uint8_t { text, flag, number };
  enum class Need : std::uint8_t { optional, needed };
  std::string_view name;
  Type type = Type::text;
  Need need = Need::optional;
};

// What becomes of members that are not in the list.
enum class Others : std::uint8_t { refused, attributes };

class AdminBody {
 public:
  // An empty body is an empty object.
  static Result<AdminBody> read(std::string_view body, std::span<const AdminMember> known,
                                Others others = Others::refused);

  std::string_view text(std::string_view name) const;  // empty if it is not there
  bool has(std::string_view name) const { return values_.contains(name); }
  bool flag(std::string_view name) const { return text(name) == "true"; }
  std::optional<std::uint64_t> number(std::string_view name) const;
  // The other members, as an object.
  const std::string& attributes() const { return attributes_; }

 private:
  Result<void> take(JsonReader& json, const AdminMember& member);

  std::map<std::string, std::string, std::less<>> values_;
  std::string attributes_ = "{}";
};

}  // namespace weir
