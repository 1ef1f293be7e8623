// POST /json. See http_rls.h.
#include "server/http_rls.h"

#include <memory>

namespace weir {
namespace {

int status_of(RlsCode code) {
  switch (code) {
    case RlsCode::ok:
      return 200;
    case RlsCode::over_limit:
      return 429;
    case RlsCode::unknown:
      break;
  }
  return 500;
}

}  // namespace

HttpNext rls_route(const HttpCall& call, HttpService& service, HttpWork&) {
  HttpAnswer& out = service.answer;
  if (auto read = read_rls_json(call.body, service.rls_request); !read) {
    write_problem(out, 400, "Bad request", read.error().message);
    return HttpNext::answer;
  }
  if (service.rls == nullptr) service.rls = std::make_unique<RlsService>(service.limiter, service.gate);
  const auto decided = service.rls->decide(service.rls_request.request);
  if (!decided) {
    write_problem(out, 400, "Bad request", decided.error().message);
    return HttpNext::answer;
  }
  out.status = status_of((*decided)->overall_code);
  append_rls_json(**decided, out.body);
  return HttpNext::answer;
}

}  // namespace weir
