// Admin routes for single keys: explain, reset and ban a key, and list the top keys. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/admin.sh.
#include "server/admin/admin_api.h"

#include <array>
#include <utility>

#include "protocol/explain_text.h"

namespace weir::server::admin {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;

constexpr std::array<AdminMember, 2> kReset = {{{"rule", text, needed}, {"reason", text}}};
constexpr std::array<AdminMember, 4> kBan = {
    {{"for", text, needed}, {"reason", text}, {"force", flag}, {"cost", number}}};

// Parses a request's attributes into HttpContext::item, as POST /v1/check does.
Result<Request> request_of(const std::string& attributes, http::HttpContext& context) {
  context.texts.clear();
  if (attributes == "{}") {
    return fail(ErrorCode::invalid_argument,
                "send at least one attribute of the request, such as \"ip\":\"192.0.2.1\"");
  }
  if (auto read = protocol::parse_check(attributes, protocol::CheckShape::check, context.item, context.texts); !read) {
    return fail(std::move(read.error()));
  }
  if (context.item.by_rules) return context.item.request();
  return fail(ErrorCode::invalid_argument,
              "send attributes such as \"user\", \"ip\" and \"path\"; rules do not use \"key\" and \"limit\"");
}

Result<void> needs_rules(http::HttpContext& context) {
  if (control_of(context).has_rules()) return {};
  return fail(ErrorCode::out_of_range, "there are no rules; start the server with --config weir.yaml");
}

}  // namespace

http::HttpNext explain_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const auto body = AdminBody::read(call.body, {}, Others::attributes);
  if (!body) return refuse_body(context, body.error());
  const auto request = request_of(body->attributes(), context);
  if (!request) return refuse_body(context, request.error());
  if (const auto rules = needs_rules(context); !rules) return refuse_change(context, rules.error());
  const auto explanation = control_of(context).gate().explain(*request);
  if (!explanation) return refuse_change(context, explanation.error());
  context.answer.body = protocol::to_json(*explanation);
  return http::HttpNext::answer;
}

http::HttpNext reset_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const auto make = [&](const AdminBody& body, const control::Author& author) {
    // A rule without `per` needs no attributes.
    const bool has_none = body.attributes() == "{}";
    const auto request = has_none ? Result<Request>(Request{}) : request_of(body.attributes(), context);
    if (!request) return refuse_body(context, request.error());
    if (const auto rules = needs_rules(context); !rules) return refuse_change(context, rules.error());
    const std::string_view rule = body.text("rule");
    const std::string what =
        "reset " + std::string(rule) + ": " + (has_none ? "all" : control::request_text(context.item.request()));
    const auto reset = control_of(context).reset(rule, *request, what, author);
    if (!reset) return refuse_change(context, reset.error());
    return answer_object(context, [&](protocol::JsonWriter& json) { json.flag("reset", *reset); });
  };
  return make_change(call, context, kReset, make, Others::attributes);
}

http::HttpNext top_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  constexpr std::size_t kMost = 1'000;
  TopBy by = TopBy::hits;
  std::string rule;
  std::size_t n = 20;
  const auto take = [&](const protocol::Parameter& parameter) -> Result<bool> {
    if (parameter.name == "n") return take_count(parameter, kMost, n);
    if (parameter.name == "rule") {
      rule = parameter.value;
    } else if (parameter.name == "by" && (parameter.value == "hits" || parameter.value == "denied")) {
      by = parameter.value == "hits" ? TopBy::hits : TopBy::denied;
    } else {
      return false;
    }
    return true;
  };
  if (const auto read = read_query(call, "use by=hits, by=denied, rule=NAME or n=20", take); !read) {
    return refuse_body(context, read.error());
  }
  const Gate& gate = control_of(context).gate();
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.number("seconds", static_cast<std::uint64_t>(gate.top_keys_cover().count() / 1'000'000));
    append_nodes(json, admin_of(context));
    append_objects(json, "keys", gate.top_keys(by, rule, n), [&](const TopKey& one) {
      json.text("rule", one.rule);
      json.text("key", one.key);
      json.number("hits", one.hits);
      json.number("denied", one.denied);
      json.number("error", one.error);
    });
  });
}

http::HttpNext ban_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const auto make = [&](const AdminBody& body, const control::Author& author) {
    if (body.has("cost")) {
      return refuse_body(context, {ErrorCode::invalid_argument, "a ban applies to any \"cost\"; leave it out", 0});
    }
    const auto lasts = lasting_of(body);
    if (!lasts) return refuse_body(context, lasts.error());
    const auto request = request_of(body.attributes(), context);
    if (!request) return refuse_body(context, request.error());
    const Force force = body.flag("force") ? Force::yes : Force::no;
    const auto ban = control_of(context).ban(*request, **lasts, author, force);
    if (!ban) return refuse_change(context, ban.error());
    return answer_object(context, [&](protocol::JsonWriter& json) {
      json.number("id", ban->id);
      json.text("rule", ban->rule);
      json.text("what", ban->what);
      json.raw("until", time_or_null(ban->until.value_or(Micros{0})));
      append_reach(json, context, ban->id);
    });
  };
  return make_change(call, context, kBan, make, Others::attributes);
}

}  // namespace weir::server::admin
