// The routes of the admin API. Each group of routes has a file, admin_*.cc; admin_api.cc has their table.
//
// Only the admin thread calls them. They may wait for a disk, because this thread answers no checks. Tested by
// admin_api_test.cc and tests/server/admin.sh.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/nearest.h"
#include "control/control.h"
#include "protocol/json_reader.h"
#include "protocol/json_writer.h"
#include "protocol/query.h"
#include "server/admin/admin_service.h"
#include "server/http/http_routes.h"

namespace weir::server::admin {

http::HttpHandler status_route, rules_route;
http::HttpHandler policy_route, validate_route, apply_route, reload_route, undo_route, changes_route;
http::HttpHandler mode_route, kill_switch_route, log_route, set_log_route;
http::HttpHandler explain_route, reset_route, ban_route, top_route;
http::HttpHandler plans_route, list_plans_route, show_plan_route, set_plan_route, override_plan_route,
    remove_plan_route;
http::HttpHandler nodes_route, usage_route;

// The bodies of calls: a JSON object with a few known members.
//
// Parsing is strict: an unknown or repeated member is an error, because with a misspelt "for" a change would never
// end. Members that describe a request, as in POST /v1/check, are passed on unparsed. See admin_body.cc.
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

// Helpers of several groups.
http::HttpNext refuse_body(http::HttpContext& context, const Error& error);    // 400
http::HttpNext refuse_change(http::HttpContext& context, const Error& error);  // 404, 409, 422 or 503
Result<control::Author> author_of(const http::HttpCall& call, const AdminBody& body);

// Reads the body and the author of a change; `make(body, author)` makes it and answers.
template <class Make>
http::HttpNext make_change(const http::HttpCall& call, http::HttpContext& context, std::span<const AdminMember> members,
                           Make make, Others others = Others::refused) {
  const auto body = AdminBody::read(call.body, members, others);
  if (!body) return refuse_body(context, body.error());
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(context, author.error());
  return make(*body, *author);
}

// Passes each parameter of the call's query to `take`, which returns false if it does not know it. `known` says which
// parameters there are.
template <class Take>
Result<void> read_query(const http::HttpCall& call, std::string_view known, Take take) {
  const auto parameters = protocol::parse_query(protocol::split_target(call.target).query);
  if (!parameters) return fail(parameters.error());
  for (const protocol::Parameter& parameter : *parameters) {
    const Result<bool> taken = take(parameter);
    if (!taken) return fail(taken.error());
    if (*taken) continue;
    return fail(
        ErrorCode::invalid_argument,
        "unknown parameter " + base::in_quotes(parameter.name + '=' + parameter.value) + "; " + std::string(known));
  }
  return {};
}

// Answers a JSON object, whose members `write` writes.
template <class Write>
http::HttpNext answer_object(http::HttpContext& context, Write write) {
  protocol::JsonWriter json(context.answer.body);
  json.begin_object();
  write(json);
  json.end_object();
  context.answer.body += '\n';
  return http::HttpNext::answer;
}

// The duration in the member "for"; nothing if the member is missing.
Result<std::optional<Micros>> lasting_of(const AdminBody& body);
// Answers {"id":…,"changes":[…]}, followed by the members of append_reach().
http::HttpNext answer_made(http::HttpContext& context, const Result<control::Made>& made);
// For a change in a fleet: appends `on_all_servers` and, if that is false, a `note` that says until when.
void append_reach(protocol::JsonWriter& json, http::HttpContext& context, std::uint64_t change);
// Reads a query parameter that gives a number of results.
Result<bool> take_count(const protocol::Parameter& parameter, std::size_t most, std::size_t& out);
// Appends an array of objects, whose members `write` writes for each value.
template <class Values, class Write>
void append_objects(protocol::JsonWriter& json, std::string_view name, const Values& values, Write write) {
  json.begin_array(name);
  for (const auto& value : values) {
    json.begin_object();
    write(value);
    json.end_object();
  }
  json.end_array();
}
std::string time_or_null(Micros time);  // as JSON; 0 is null

}  // namespace weir::server::admin
