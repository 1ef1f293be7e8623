// Reads the bodies of admin API calls. See admin_api.h.
//
// Any thread. Tested by admin_api_test.cc.
#include "server/admin/admin_api.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "base/nearest.h"
#include "base/text.h"

namespace weir::server::admin {
namespace {

tl::unexpected<Error> wrong(std::string message) { return fail(ErrorCode::invalid_argument, std::move(message)); }

tl::unexpected<Error> not_json(const protocol::JsonReader& json) {
  return wrong("the body is not JSON: " + std::string(json.why()) + " at byte " + std::to_string(json.at() + 1) +
               "; send a JSON object");
}

tl::unexpected<Error> unknown(std::string_view name, std::span<const AdminMember> known) {
  std::vector<std::string_view> names;
  for (const AdminMember& member : known) names.push_back(member.name);
  const std::string_view meant = base::nearest(name, names);
  std::string message = "unknown member " + base::in_quotes(name);
  if (!meant.empty()) return wrong(message.append("; did you mean \"").append(meant).append("\"?"));
  message += names.empty() ? "; this call takes no members" : "; known members are";
  for (const std::string_view one : names) message.append(" \"").append(one).append("\"");
  return wrong(std::move(message));
}

}  // namespace

Result<void> AdminBody::take(protocol::JsonReader& json, const AdminMember& member) {
  constexpr std::array<std::string_view, 3> kTypes = {"a string", "true or false", "a whole number"};
  const char first = json.next();
  std::string_view text;
  bool is_right = false;
  if (member.type == AdminMember::Type::text && first == '"') is_right = json.read_text(text);
  if (member.type == AdminMember::Type::flag && (first == 't' || first == 'f')) {
    is_right = json.skip_value();
    text = first == 't' ? "true" : "false";
  }
  if (member.type == AdminMember::Type::number && first >= '0' && first <= '9') {
    is_right = json.read_number(text) && base::to_number<std::int64_t>(text).has_value();
  }
  if (json.is_broken()) return not_json(json);
  if (is_right) {
    values_.emplace(member.name, text);
    return {};
  }
  return wrong('"' + std::string(member.name) + "\" must be " +
               std::string(kTypes[static_cast<std::size_t>(member.type)]));
}

Result<AdminBody> AdminBody::read(std::string_view body, std::span<const AdminMember> known, Others others) {
  protocol::JsonTexts texts;
  protocol::JsonReader json(body, texts);
  AdminBody out;
  std::string rest;
  std::string_view name;
  bool is_first = true;
  const bool is_empty = json.at_end();
  if (!is_empty && !json.take('{')) return wrong("the body must be a JSON object such as {\"reason\":\"incident 12\"}");
  while (!is_empty && json.next_member(name, is_first)) {
    const auto member = std::ranges::find(known, name, &AdminMember::name);
    if (member != known.end()) {
      if (out.has(name)) return wrong('"' + std::string(name) + "\" is given twice; send it once");
      if (auto taken = out.take(json, *member); !taken) return fail(std::move(taken.error()));
      continue;
    }
    if (others == Others::refused) return unknown(name, known);
    json.next();
    const std::size_t begin = json.at();
    const std::string named(name);
    if (!json.skip_value()) break;
    if (!rest.empty()) rest += ',';
    base::append_json_text(rest, named);
    rest.append(":").append(body.substr(begin, json.at() - begin));
  }
  if (json.is_broken()) return not_json(json);
  if (!json.at_end()) return wrong("unexpected text after the JSON object; send one object");
  for (const AdminMember& member : known) {
    if (member.need == AdminMember::Need::needed && !out.has(member.name)) {
      return wrong('"' + std::string(member.name) + "\" is missing");
    }
  }
  out.attributes_ = '{' + rest + '}';
  return out;
}

std::string_view AdminBody::text(std::string_view name) const {
  const auto value = values_.find(name);
  return value == values_.end() ? std::string_view() : value->second;
}

std::optional<std::uint64_t> AdminBody::number(std::string_view name) const {
  return base::to_number<std::uint64_t>(text(name));
}

}  // namespace weir::server::admin
