// Admin routes for runtime changes: a rule's mode, the kill switch and the log level. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/admin.sh.
#include <array>
#include <string>

#include "protocol/json_writer.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_service.h"

namespace weir {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;

constexpr std::array<AdminMember, 4> kMode = {
    {{"rule", text, needed}, {"mode", text, needed}, {"for", text}, {"reason", text}}};
constexpr std::array<AdminMember, 3> kKillSwitch = {{{"on", flag, needed}, {"for", text}, {"reason", text}}};
constexpr std::array<AdminMember, 3> kLog = {{{"level", text, needed}, {"for", text}, {"reason", text}}};

// Parses the body, the author and the duration; `make` makes the change.
template <class Make>
HttpNext change(const HttpCall& call, HttpService& service, std::span<const AdminMember> members, Make make) {
  const auto body = AdminBody::read(call.body, members);
  if (!body) return refuse_body(service, body.error());
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(service, author.error());
  const auto lasts = lasting_of(*body);
  if (!lasts) return refuse_body(service, lasts.error());
  return answer_made(service, make(*body, *lasts, *author));
}

}  // namespace

HttpNext mode_route(const HttpCall& call, HttpService& service, HttpWork&) {
  Control& control = *service.admin->control;
  return change(call, service, kMode, [&](const AdminBody& body, std::optional<Micros> lasts, const Author& author) {
    return control.set_mode(body.text("rule"), body.text("mode"), lasts, author);
  });
}

HttpNext kill_switch_route(const HttpCall& call, HttpService& service, HttpWork&) {
  Control& control = *service.admin->control;
  return change(call, service, kKillSwitch,
                [&](const AdminBody& body, std::optional<Micros> lasts, const Author& author) {
                  return control.set_kill_switch(body.flag("on"), lasts, author);
                });
}

HttpNext set_log_route(const HttpCall& call, HttpService& service, HttpWork&) {
  Control& control = *service.admin->control;
  return change(call, service, kLog, [&](const AdminBody& body, std::optional<Micros> lasts, const Author& author) {
    return control.change_log_level(body.text("level"), lasts, author);
  });
}

HttpNext log_route(const HttpCall&, HttpService& service, HttpWork&) {
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.text("level", to_string(service.admin->control->status().log_level));
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

}  // namespace weir
