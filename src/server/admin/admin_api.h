// The routes of the admin API. Each group of routes has a file, admin_*.cc; http_api.cc has the table of routes.
//
// Only the admin thread calls them. They may wait for a disk, because this thread answers no checks. Tested by
// admin_api_test.cc and tests/server/admin.sh.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "control/control.h"
#include "protocol/json_writer.h"
#include "server/admin/admin_body.h"
#include "server/http/http_service.h"

namespace weir {

// guard_admin()
//
// Answers a call that is not permitted. Otherwise returns nothing, and the later answer carries the header fields
// that every answer of the admin API has.
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

// Helpers of several groups.
HttpNext refuse_body(HttpService& service, const Error& error);    // 400
HttpNext refuse_change(HttpService& service, const Error& error);  // 404, 409, 422 or 503
Result<Author> author_of(const HttpCall& call, const AdminBody& body);
// The duration in the member "for"; nothing if the member is missing.
Result<std::optional<Micros>> lasting_of(const AdminBody& body);
// Answers {"id":…,"changes":[…]}, followed by the members of append_reach().
HttpNext answer_made(HttpService& service, const Result<Made>& made);
// For a change in a fleet: appends `on_all_servers` and, if that is false, a `note` that says until when.
void append_reach(JsonWriter& json, HttpService& service, std::uint64_t change);
// A query parameter that gives a number of results.
Result<std::size_t> count_of(std::string_view name, std::string_view text, std::size_t most);
std::string time_or_null(Micros time);  // as JSON; 0 is null

}  // namespace weir
