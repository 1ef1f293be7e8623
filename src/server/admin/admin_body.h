// The bodies of admin API calls: a JSON object with a few known members.
//
// Parsing is strict: an unknown or repeated member is an error, because with a misspelt "for" a change would never
// end. Members that describe a request, as in POST /v1/check, are passed on unparsed. One thread. Tested by
// admin_api_test.cc.
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

namespace weir::server::admin {

struct AdminMember {
  enum class Type : std::uint8_t { text, flag, number };
  enum class Need : std::uint8_t { optional, needed };
  std::string_view name;
  Type type = Type::text;
  Need need = Need::optional;
};

// What happens to members that are not in the list.
enum class Others : std::uint8_t { refused, attributes };

class AdminBody {
 public:
  // An empty body is an empty object.
  static Result<AdminBody> read(std::string_view body, std::span<const AdminMember> known,
                                Others others = Others::refused);

  std::string_view text(std::string_view name) const;  // empty if the member is missing
  bool has(std::string_view name) const { return values_.contains(name); }
  bool flag(std::string_view name) const { return text(name) == "true"; }
  std::optional<std::uint64_t> number(std::string_view name) const;
  // The members outside the list, as an object.
  const std::string& attributes() const { return attributes_; }

 private:
  Result<void> take(protocol::JsonReader& json, const AdminMember& member);

  std::map<std::string, std::string, std::less<>> values_;
  std::string attributes_ = "{}";
};

}  // namespace weir::server::admin
