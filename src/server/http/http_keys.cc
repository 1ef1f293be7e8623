// Resets keys; the query of the target has the attributes. See http_keys.h.
#include "server/http/http_keys.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/nearest.h"
#include "protocol/query.h"
#include "server/http/http_check.h"

namespace weir {
namespace {

constexpr std::string_view kBelow = "/v1/keys/";
constexpr std::string_view kHeader = "header.", kEntry = "entry.";

struct PlainAttribute {
  std::string_view name;
  std::string_view Request::*value;
};
constexpr std::array<PlainAttribute, 8> kPlain = {{{"user", &Request::user},
                                                   {"api_key", &Request::api_key},
                                                   {"ip", &Request::ip},
                                                   {"tenant", &Request::tenant},
                                                   {"plan", &Request::plan},
                                                   {"method", &Request::method},
                                                   {"host", &Request::host},
                                                   {"path", &Request::path}}};

HttpNext answer(HttpService& service, const Result<bool>& reset) {
  if (!reset) return refuse_or_404(service, reset.error());
  service.answer.body.append(*reset ? "{\"reset\":true}\n" : "{\"reset\":false}\n");
  return HttpNext::answer;
}

Error unknown(const std::string& name) {
  std::array<std::string_view, kPlain.size()> known;
  std::ranges::transform(kPlain, known.begin(), &PlainAttribute::name);
  const std::string_view meant = nearest(name, known);
  return {ErrorCode::invalid_argument,
          "unknown attribute " + in_quotes(name) + "; " +
              (meant.empty() ? "use user, api_key, ip, tenant, plan, method, host, path, header.NAME or entry.NAME"
                             : "did you mean " + std::string(meant) + "?"),
          0};
}

std::optional<Error> take(const Parameter& parameter, Request& request, std::vector<Attribute>& headers,
                          std::vector<Attribute>& entries) {
  const std::string_view name = parameter.name;
  if (name.starts_with(kHeader) && name.size() > kHeader.size()) {
    headers.push_back({name.substr(kHeader.size()), parameter.value});
    return {};
  }
  if (name.starts_with(kEntry) && name.size() > kEntry.size()) {
    entries.push_back({name.substr(kEntry.size()), parameter.value});
    return {};
  }
  const auto* const plain = std::ranges::find(kPlain, name, &PlainAttribute::name);
  if (plain == kPlain.end()) return unknown(parameter.name);
  std::string_view& value = request.*plain->value;
  if (!value.empty()) {
    return Error{ErrorCode::invalid_argument, parameter.name + " is given twice; give it once", 0};
  }
  value = parameter.value;
  return {};
}

}  // namespace

HttpNext reset_key_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto parameters = parse_query(split_target(call.target).query);
  if (!parameters) return refuse_or_404(service, parameters.error());
  if (parameters->size() != 1 || parameters->front().name != "key") {
    return refuse_or_404(service, {ErrorCode::invalid_argument,
                                   "name a key (DELETE /v1/keys?key=user:42), or a rule and its attributes "
                                   "(DELETE /v1/keys/login?ip=192.0.2.1)",
                                   0});
  }
  const std::string& key = parameters->front().value;
  if (auto error = refuse_key(key, service.bounds.key_max)) {
    if (!service.bounds.has_room_for(key)) service.bounds.refuse(Refused::key);
    return refuse_or_404(service, *error);
  }
  return answer(service, service.limiter.reset(key));
}

HttpNext reset_rule_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const Target target = split_target(call.target);
  const auto rule = percent_decoded(target.path.substr(kBelow.size()));
  if (!rule || rule->empty()) {
    return refuse_or_404(service, {ErrorCode::invalid_argument,
                                   "name a rule and its attributes: DELETE /v1/keys/login?ip=192.0.2.1", 0});
  }
  const auto parameters = parse_query(target.query);
  if (!parameters) return refuse_or_404(service, parameters.error());
  Request request;
  std::vector<Attribute> headers, entries;
  for (const Parameter& parameter : *parameters) {
    if (const auto error = take(parameter, request, headers, entries)) return refuse_or_404(service, *error);
  }
  request.headers = headers;
  request.entries = entries;
  if (service.gate == nullptr) {
    return refuse_or_404(service,
                         {ErrorCode::not_found, "there are no rules; start the server with --config weir.yaml", 0});
  }
  service.refusal = 409;  // what remains is that the rule counts by other attributes
  return answer(service, service.gate->reset(*rule, request));
}

}  // namespace weir
