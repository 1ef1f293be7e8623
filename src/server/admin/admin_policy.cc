// Admin routes for the policy: show, validate, apply and reload it; list and undo changes. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/admin.sh.
#include <array>
#include <string>

#include "base/nearest.h"
#include "protocol/json_writer.h"
#include "protocol/query.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_service.h"

namespace weir {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;

constexpr std::array<AdminMember, 1> kValidate = {{{"text", text, needed}}};
constexpr std::array<AdminMember, 3> kApply = {{{"text", text, needed}, {"force", flag}, {"reason", text}}};
constexpr std::array<AdminMember, 2> kUndo = {{{"id", number}, {"reason", text}}};
constexpr std::size_t kChangesDefault = 50;

void append_change(JsonWriter& json, const ListedChange& listed) {
  const Change& change = listed.change;
  json.begin_object();
  json.number("id", change.id);
  json.raw("at", time_or_null(change.at));
  json.text("who", change.by.who);
  json.text("from", change.by.from);
  json.text("kind", to_string(change.kind));
  json.text("what", change.what);
  json.text("reason", change.by.reason);
  json.raw("until", time_or_null(change.until.value_or(Micros{0})));
  json.flag("active", listed.standing.active);
  listed.standing.undone_by > 0 ? json.number("undone_by", listed.standing.undone_by) : json.null("undone_by");
  change.undoes > 0 ? json.number("undoes", change.undoes) : json.null("undoes");
  if (!listed.has_rule) json.text("note", "rule " + change.rule + " does not exist now");
  json.end_object();
}

}  // namespace

HttpNext policy_route(const HttpCall&, HttpService& service, HttpWork&) {
  const ControlStatus status = service.admin->control->status();
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.text("text", service.admin->control->policy_text());
  json.text("file", status.file);
  json.text("hash", status.hash);
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

HttpNext validate_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, kValidate);
  if (!body) return refuse_body(service, body.error());
  const Validation found = service.admin->control->validate(body->text("text"));
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.flag("ok", found.ok);
  if (found.ok) {
    json.texts("changes", found.changes);
    json.texts("refused", found.refused);
    json.texts("warnings", found.warnings);
  } else {
    json.text("error", found.error);
  }
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

HttpNext apply_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, kApply);
  if (!body) return refuse_body(service, body.error());
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(service, author.error());
  const Force force = body->flag("force") ? Force::yes : Force::no;
  return answer_made(service, service.admin->control->apply_policy(body->text("text"), force, *author));
}

HttpNext reload_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, {});  // no reason: only the file matters, and the journal gets no entry
  if (!body) return refuse_body(service, body.error());
  const auto changes = service.admin->control->reload();
  if (!changes) {
    write_problem(service.answer, 422, "Reload failed", changes.error().message);
    return HttpNext::answer;
  }
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.flag("ok", true);
  json.texts("changes", *changes);
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

HttpNext undo_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto body = AdminBody::read(call.body, kUndo);
  if (!body) return refuse_body(service, body.error());
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(service, author.error());
  std::uint64_t undoes = 0;
  const auto made = service.admin->control->undo(body->number("id"), *author, undoes);
  if (!made) return refuse_change(service, made.error());
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.number("id", made->id);
  json.number("undoes", undoes);
  json.texts("changes", made->changes);
  append_reach(json, service, made->id);
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

HttpNext changes_route(const HttpCall& call, HttpService& service, HttpWork&) {
  std::size_t n = kChangesDefault;
  const auto parameters = parse_query(split_target(call.target).query);
  if (!parameters) return refuse_body(service, parameters.error());
  for (const Parameter& parameter : *parameters) {
    if (parameter.name != "n")
      return refuse_body(service, {ErrorCode::invalid_argument,
                                   "unknown parameter " + in_quotes(parameter.name) + "; the only parameter is n", 0});
    const auto count = count_of("n", parameter.value, Journal::kLinesMax);
    if (!count) return refuse_body(service, count.error());
    n = *count;
  }
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.begin_array("changes");
  for (const ListedChange& one : service.admin->control->changes(n)) append_change(json, one);
  json.end_array();
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

}  // namespace weir
