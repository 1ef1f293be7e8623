// Fuzzes requests of Envoy's rate limit service, as protobuf and as JSON: any bytes give values within their bounds, or
// an error.
//
// A parsed request is the same after writing and parsing it. The response to it is written in both formats.
#include <cstddef>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "protocol/grpc_services.h"
#include "protocol/rls.h"
#include "protocol/rls_json.h"
#include "server/rls/rls_service.h"

namespace {

using namespace weir;

void require_same(const protocol::RlsRequest& a, const protocol::RlsRequest& b) {
  WEIR_ASSERT(a.domain == b.domain && a.hits_addend == b.hits_addend && a.descriptors.size() == b.descriptors.size());
  for (std::size_t i = 0; i < a.descriptors.size(); ++i) {
    const protocol::RlsDescriptor &one = a.descriptors[i], &other = b.descriptors[i];
    WEIR_ASSERT(one.limit == other.limit && one.hits_addend == other.hits_addend && one.count == other.count);
    WEIR_ASSERT(one.is_negative_hits == other.is_negative_hits);
    const auto entries = a.all_of(one), others = b.all_of(other);
    for (std::size_t k = 0; k < entries.size(); ++k) {
      WEIR_ASSERT(entries[k].name == others[k].name && entries[k].value == others[k].value);
    }
  }
}

void decide(const protocol::RlsRequest& request) {
  static Limiter limiter(LimiterOptions{.keys = 1'000, .sweeping = Sweeping::by_hand});
  static Gate gate(limiter);
  static const bool applied = static_cast<bool>(gate.apply(*parse_policy(
      "rules: [{name: a, per: user, limit: 3/second}, {name: b, per: ip, limit: 5/minute burst 9}]", "fuzz")));
  WEIR_ASSERT(applied);
  static server::rls::RlsService service(limiter);
  const auto decided = service.decide(request, &gate);
  if (!decided) return WEIR_ASSERT(!decided.error().message.empty());
  const protocol::RlsResponse& response = **decided;
  WEIR_ASSERT(response.overall_code != protocol::RlsCode::unknown &&
              response.statuses.size() == request.descriptors.size());
  std::string bytes, text;
  protocol::append_rls_response(response, bytes);
  protocol::append_rls_json(response, text);
  WEIR_ASSERT(bytes.size() >= 2 && text.front() == '{' && text.back() == '}');
}

}  // namespace

void fuzz(std::string_view bytes) {
  protocol::RlsRequest request, again;
  protocol::RlsJsonRequest from_json;
  if (protocol::read_rls_request(bytes, request)) {
    WEIR_ASSERT(request.descriptors.size() <= protocol::kRlsDescriptorsMax);
    std::string written;
    protocol::append_rls_request(request, written);
    WEIR_ASSERT(protocol::read_rls_request(written, again).has_value());
    require_same(request, again);
    decide(request);
  }
  if (protocol::read_rls_json(bytes, from_json)) decide(from_json.request);
  static_cast<void>(protocol::read_health_request(bytes));
  static const protocol::Reflection reflection;
  std::string out;
  static_cast<void>(reflection.answer(bytes, out));
}
