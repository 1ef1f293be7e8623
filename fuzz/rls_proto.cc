// The rate limit service's request in both its forms: any bytes give values within their bounds, or an error.
//
// What was read is written and read again, and must be the same. What is decided about it is encoded in both forms.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/health.h"
#include "protocol/reflection.h"
#include "protocol/rls.h"
#include "protocol/rls_json.h"
#include "server/rls/rls_service.h"

namespace {

using namespace weir;

void require(bool condition) {
  if (!condition) std::abort();
}

void require_same(const RlsRequest& a, const RlsRequest& b) {
  require(a.domain == b.domain && a.hits_addend == b.hits_addend && a.descriptors.size() == b.descriptors.size());
  for (std::size_t i = 0; i < a.descriptors.size(); ++i) {
    const RlsDescriptor &one = a.descriptors[i], &other = b.descriptors[i];
    require(one.limit == other.limit && one.hits_addend == other.hits_addend && one.count == other.count);
    require(one.is_negative_hits == other.is_negative_hits);
    const auto entries = a.all_of(one), others = b.all_of(other);
    for (std::size_t k = 0; k < entries.size(); ++k) {
      require(entries[k].name == others[k].name && entries[k].value == others[k].value);
    }
  }
}

void decide(const RlsRequest& request) {
  static Limiter limiter(LimiterOptions{.keys = 1'000, .sweeping = Sweeping::by_hand});
  static Gate gate(limiter);
  static const bool applied = static_cast<bool>(gate.apply(*parse_policy(
      "rules: [{name: a, per: user, limit: 3/second}, {name: b, per: ip, limit: 5/minute burst 9}]", "fuzz")));
  require(applied);
  static RlsService service(limiter);
  const auto decided = service.decide(request, &gate);
  if (!decided) return require(!decided.error().message.empty());
  const RlsResponse& response = **decided;
  require(response.overall_code != RlsCode::unknown && response.statuses.size() == request.descriptors.size());
  std::string bytes, text;
  append_rls_response(response, bytes);
  append_rls_json(response, text);
  require(bytes.size() >= 2 && text.front() == '{' && text.back() == '}');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  RlsRequest request, again;
  RlsJsonRequest from_json;
  if (read_rls_request(bytes, request)) {
    require(request.descriptors.size() <= kRlsDescriptorsMax);
    std::string written;
    append_rls_request(request, written);
    require(read_rls_request(written, again).has_value());
    require_same(request, again);
    decide(request);
  }
  if (read_rls_json(bytes, from_json)) decide(from_json.request);
  static_cast<void>(read_health_request(bytes));
  static const Reflection reflection;
  std::string out;
  static_cast<void>(reflection.answer(bytes, out));
  return 0;
}
