// Admin routes for the config and for runtime changes: a rule's mode, the kill switch, the log level, the list of
// changes and their undo. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/admin.sh.
#include "server/admin/admin_api.h"

#include <array>

namespace weir::server::admin {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;

constexpr std::array<AdminMember, 1> kValidate = {{{"text", text, needed}}};
constexpr std::array<AdminMember, 3> kApply = {{{"text", text, needed}, {"force", flag}, {"reason", text}}};
constexpr std::array<AdminMember, 2> kUndo = {{{"id", number}, {"reason", text}}};
constexpr std::array<AdminMember, 4> kMode = {
    {{"rule", text, needed}, {"mode", text, needed}, {"for", text}, {"reason", text}}};
constexpr std::array<AdminMember, 3> kKillSwitch = {{{"on", flag, needed}, {"for", text}, {"reason", text}}};
constexpr std::array<AdminMember, 3> kLog = {{{"level", text, needed}, {"for", text}, {"reason", text}}};
constexpr std::size_t kChangesDefault = 50;

void append_change(protocol::JsonWriter& json, const control::ListedChange& listed) {
  const control::Change& change = listed.change;
  json.number("id", change.id);
  json.raw("at", time_or_null(change.at));
  json.text("who", change.by.who);
  json.text("from", change.by.from);
  json.text("kind", control::to_string(change.kind));
  json.text("what", change.what);
  json.text("reason", change.by.reason);
  json.raw("until", time_or_null(change.until.value_or(Micros{0})));
  json.flag("active", listed.standing.active);
  listed.standing.undone_by > 0 ? json.number("undone_by", listed.standing.undone_by) : json.null("undone_by");
  change.undoes > 0 ? json.number("undoes", change.undoes) : json.null("undoes");
  if (!listed.has_rule) json.text("note", "rule " + change.rule + " does not exist now");
}

// Also parses the duration; `make` makes the change.
template <class Make>
http::HttpNext change(const http::HttpCall& call, http::HttpContext& context, std::span<const AdminMember> members,
                      Make make) {
  return make_change(call, context, members, [&](const AdminBody& body, const control::Author& author) {
    const auto lasts = lasting_of(body);
    if (!lasts) return refuse_body(context, lasts.error());
    return answer_made(context, make(body, *lasts, author));
  });
}

}  // namespace

http::HttpNext policy_route(const http::HttpCall&, http::HttpContext& context, http::HttpWork&) {
  const control::ControlStatus status = control_of(context).status();
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.text("text", control_of(context).policy_text());
    json.text("file", status.file);
    json.text("hash", status.hash);
  });
}

http::HttpNext validate_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const auto body = AdminBody::read(call.body, kValidate);
  if (!body) return refuse_body(context, body.error());
  const control::Validation found = control_of(context).validate(body->text("text"));
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.flag("ok", found.ok);
    if (found.ok) {
      json.texts("changes", found.changes);
      json.texts("refused", found.refused);
      json.texts("warnings", found.warnings);
    } else {
      json.text("error", found.error);
    }
  });
}

http::HttpNext apply_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return make_change(call, context, kApply, [&](const AdminBody& body, const control::Author& author) {
    const Force force = body.flag("force") ? Force::yes : Force::no;
    return answer_made(context, control_of(context).apply_policy(body.text("text"), force, author));
  });
}

http::HttpNext reload_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const auto body = AdminBody::read(call.body, {});  // takes no "reason", since the journal gets no entry
  if (!body) return refuse_body(context, body.error());
  const auto changes = control_of(context).reload();
  if (!changes) return http::answer_problem(context, 422, "Reload failed", changes.error().message);
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.flag("ok", true);
    json.texts("changes", *changes);
  });
}

http::HttpNext undo_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return make_change(call, context, kUndo, [&](const AdminBody& body, const control::Author& author) {
    std::uint64_t undoes = 0;
    const auto made = control_of(context).undo(body.number("id"), author, undoes);
    if (!made) return refuse_change(context, made.error());
    return answer_object(context, [&](protocol::JsonWriter& json) {
      json.number("id", made->id);
      json.number("undoes", undoes);
      json.texts("changes", made->changes);
      append_reach(json, context, made->id);
    });
  });
}

http::HttpNext changes_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  std::size_t n = kChangesDefault;
  const auto read =
      read_query(call, "the only parameter is n", [&](const protocol::Parameter& parameter) -> Result<bool> {
        if (parameter.name != "n") return false;
        return take_count(parameter, control::Journal::kLinesMax, n);
      });
  if (!read) return refuse_body(context, read.error());
  return answer_object(context, [&](protocol::JsonWriter& json) {
    append_objects(json, "changes", control_of(context).changes(n),
                   [&](const control::ListedChange& one) { append_change(json, one); });
  });
}

http::HttpNext mode_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return change(call, context, kMode, [&](const AdminBody& body, auto lasts, const control::Author& author) {
    return control_of(context).set_mode(body.text("rule"), body.text("mode"), lasts, author);
  });
}

http::HttpNext kill_switch_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return change(call, context, kKillSwitch, [&](const AdminBody& body, auto lasts, const control::Author& author) {
    return control_of(context).set_kill_switch(body.flag("on"), lasts, author);
  });
}

http::HttpNext set_log_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return change(call, context, kLog, [&](const AdminBody& body, auto lasts, const control::Author& author) {
    return control_of(context).change_log_level(body.text("level"), lasts, author);
  });
}

http::HttpNext log_route(const http::HttpCall&, http::HttpContext& context, http::HttpWork&) {
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.text("level", log::to_string(control_of(context).status().log_level));
  });
}

}  // namespace weir::server::admin
