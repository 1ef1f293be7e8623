// The routes of the admin port; each group of them has a file, admin_*.cc. Their table is in http_api.cc.
//
// They are called by the thread of the admin port, which may wait for a disk: no check is answered by it. Tested by
// admin_api_test.cc and tests/server/admin.sh.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "admin/control.h"
#include "protocol/json_writer.h"
#include "server/admin_body.h"
#include "server/http_service.h"

namespace weir {

// guard_admin()
//
// Who may not is answered here. What is answered later carries the fields that every answer of the port has.
std::optional<HttpNext> guard_admin(const HttpCall& call, std::string_view path, HttpService& service, HttpWork& work);

HttpNext status_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext policy_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext validate_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext apply_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext reload_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext undo_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext changes_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext rules_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext mode_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext kill_switch_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext explain_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext reset_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext ban_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext plans_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext list_plans_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext show_plan_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext set_plan_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext override_plan_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext remove_plan_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext nodes_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext top_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext usage_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext log_route(const HttpCall& call, HttpService& service, HttpWork& work);
HttpNext set_log_route(const HttpCall& call, HttpService& service, HttpWork& work);

// What the groups share.
HttpNext refuse_body(HttpService& service, const Error& error);    // 400
HttpNext refuse_change(HttpService& service, const Error& error);  // 404, 409, 422 or 503
Result<Author> author_of(const HttpCall& call, const AdminBody& body);
// Of the member "for"; nothing if it is not there.
Result<std::optional<Micros>> lasting_of(const AdminBody& body);
// {"id":…,"changes":[…]}, and append_reach() of it.
HttpNext answer_made(HttpService& service, const Result<Made>& made);
// Of a change in a fleet: `on_all_servers`, and if it is not, a `note` for people that says until when.
void append_reach(JsonWriter& json, HttpService& service, std::uint64_t change);
// A parameter of a query that says how many are wanted.
Result<std::size_t> count_of(std::string_view name, std::string_view text, std::size_t most);
std::string time_or_null(Micros time);  // as JSON; 0 is null

}  // namespace weir
