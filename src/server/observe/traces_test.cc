// Tests the names of spans, and the collector's address. tests/server/traces.sh tests sending them.
#include "server/observe/traces.h"

#include <gtest/gtest.h>

#include "server/observe/traced_request.h"

namespace weir::server::observe {
namespace {

TEST(Traces, HaveFewSpanNamesWhateverMethodsClientsSend) {
  protocol::TraceSpan span;
  describe_http(span, "POST", "/v1/check");
  EXPECT_EQ(span.name, "POST /v1/check");
  EXPECT_EQ(std::get<std::string>(span.attributes[0].value), "POST");
  for (const char* const odd : {"X7F3A", "post", "", "_OTHER"}) {
    describe_http(span, odd, "/auth");
    EXPECT_EQ(span.name, "HTTP /auth") << odd;
    EXPECT_EQ(span.attributes[0].name, "http.request.method");
    EXPECT_EQ(std::get<std::string>(span.attributes[0].value), "_OTHER") << odd;
  }
}

TEST(Traces, AcceptTheUrlOfACollector) {
  const auto host_of = [](const char* url) {
    const auto target = parse_trace_target(url);
    EXPECT_TRUE(target) << url;
    return base::to_string(target->collector);
  };
  EXPECT_EQ(host_of("http://collector"), "collector:4318");
  EXPECT_EQ(host_of("http://127.0.0.1:99/x"), "127.0.0.1:99");
  EXPECT_EQ(host_of("http://[::1]:4318"), "[::1]:4318");
  EXPECT_EQ(host_of("http://[2001:db8::7]"), "[2001:db8::7]:4318");
}

}  // namespace
}  // namespace weir::server::observe
