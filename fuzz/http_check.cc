// The body of POST /v1/check: any bytes give values within their bounds, or an error that says something.
//
// The error is put into a problem document, which must stay one line of text whatever the body held.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/check_json.h"
#include "protocol/problem.h"
#include "protocol/request_cost.h"
#include "weir/verdict.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const auto given = weir::parse_check(body);
  if (given && !given->charge) {
    require(given->by_rules.headers.size() <= weir::kJsonAttributesMax);
    require(given->by_rules.entries.size() <= weir::kJsonAttributesMax);
    std::vector<weir::Attribute> attributes;
    const weir::Request request = given->by_rules.request(attributes);
    require(request.headers.size() == given->by_rules.headers.size() && request.path == given->by_rules.path);
    return 0;
  }
  if (given) {
    const weir::CheckRequest* request = &*given->charge;
    require(!request->key.empty() && request->key.size() <= weir::kKeyBytesMax);
    require(request->cost >= -weir::kRequestCostMax && request->cost <= weir::kRequestCostMax);
    require(!request->limit.empty() && request->limit.size() <= 256);  // the server remembers it
    require(request->quota.algorithm != weir::Algorithm::concurrency);
    return 0;
  }
  require(!given.error().message.empty() && given.error().message.size() < 1000);
  const std::string problem = weir::problem_body({400, "Bad check", given.error().message});
  for (const char c : problem.substr(0, problem.size() - 1)) require(static_cast<unsigned char>(c) >= 0x20);
  return 0;
}
