// POST /json: parses the request, decides it and prints the response. See http_rls.h.
#include "server/http/http_rls.h"

#include <string_view>

#include "protocol/rls_json.h"

namespace weir {
namespace {

HttpNext refuse(HttpAnswer& out, std::string_view why) {
  out.status = 400;
  out.content_type = kTextType;
  out.body.append(why).append("\n");
  return HttpNext::answer;
}

}  // namespace

HttpNext rls_route(const HttpCall& call, HttpService& service, HttpWork&) {
  HttpAnswer& out = service.answer;
  if (auto read = read_rls_json(call.body, service.rls_json); !read) return refuse(out, read.error().message);
  service.rls.denials = service.denials;
  const auto decided = service.rls.decide(service.rls_json.request, service.gate);
  if (!decided) return refuse(out, decided.error().message);
  const RlsResponse& response = **decided;
  out.status = response.overall_code == RlsCode::over_limit ? 429 : 200;
  out.content_type = kJsonType;
  append_rls_json(response, out.body);
  return HttpNext::answer;
}

}  // namespace weir
