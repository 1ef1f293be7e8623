// A rate limit service with rules and a request to build, for its tests.
//
// Fixture of src/server/rls/rls_service_test.cc and rls_envoy_test.cc. One thread.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>
#include <vector>

#include "gate_fixture.h"
#include "server/rls/rls_service.h"

namespace weir::test {

using Pairs = std::vector<Attribute>;

constexpr auto kOk = protocol::RlsCode::ok, kOver = protocol::RlsCode::over_limit;

class RlsTest : public GateTest {
 protected:
  // Begins another request for this domain.
  void begin(std::string_view domain = "edge") {
    request.begin();
    request.domain = domain;
  }
  protocol::RlsDescriptor& add(const Pairs& entries) {
    request.add_descriptor();
    for (const Attribute& entry : entries) request.add_entry(entry);
    return request.descriptors.back();
  }
  const protocol::RlsResponse& decide() {
    request.end();
    const auto decided = service.decide(request, rules);
    EXPECT_TRUE(decided) << decided.error().message;
    return decided ? **decided : nothing;
  }
  // Decides a request with these descriptors.
  const protocol::RlsResponse& decide(std::initializer_list<Pairs> descriptors) {
    begin();
    for (const Pairs& entries : descriptors) add(entries);
    return decide();
  }

  server::rls::RlsService service{limiter};
  weir::Gate* rules = &gate;
  protocol::RlsRequest request;
  protocol::RlsResponse nothing;
};

}  // namespace weir::test
