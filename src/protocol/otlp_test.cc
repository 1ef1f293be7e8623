// Tests spans as collectors expect them, and parsing of their parent.
#include "protocol/otlp.h"

#include <gtest/gtest.h>

#include <string>

#include "protocol/trace_parent.h"

namespace weir::protocol {
namespace {

TEST(Otlp, WritesSpans) {
  const TraceSpan first{
      .trace_id = "4bf92f3577b34da6a3ce929d0e0e4736",
      .span_id = "00f067aa0ba902b7",
      .parent_id = "00f067aa0ba902b8",
      .name = "POST /v1/check",
      .start = Micros{1'794'812'400'000'001},
      .end = Micros{1'794'812'400'000'009},
      .attributes = {{"http.response.status_code", std::int64_t{429}}, {"weir.rule", std::string("a \"b\"\n")}}};
  const TraceSpan second{.trace_id = "1", .span_id = "2", .name = "n", .is_error = true};
  const TraceSpan spans[] = {first, second};
  EXPECT_EQ(write_otlp({"0.1.0", "i"}, spans),
            "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
            "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"weir\"}},"
            "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"0.1.0\"}},"
            "{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":\"i\"}}]},"
            "\"scopeSpans\":[{\"scope\":{\"name\":\"weir\",\"version\":\"0.1.0\"},\"spans\":["
            "{\"traceId\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"spanId\":\"00f067aa0ba902b7\","
            "\"parentSpanId\":\"00f067aa0ba902b8\",\"name\":\"POST /v1/check\",\"kind\":2,"
            "\"startTimeUnixNano\":\"1794812400000001000\",\"endTimeUnixNano\":\"1794812400000009000\",\"attributes\":["
            "{\"key\":\"http.response.status_code\",\"value\":{\"intValue\":\"429\"}},"
            "{\"key\":\"weir.rule\",\"value\":{\"stringValue\":\"a \\\"b\\\"\\u000a\"}}],\"status\":{}},"
            "{\"traceId\":\"1\",\"spanId\":\"2\",\"name\":\"n\",\"kind\":2,\"startTimeUnixNano\":\"0000\","
            "\"endTimeUnixNano\":\"0000\",\"attributes\":[],\"status\":{\"code\":2}}]}]}]}");
}

TEST(TraceParent, IsReadOrRefused) {
  const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto parent = parse_trace_parent(good);
  ASSERT_TRUE(parent);
  EXPECT_EQ(std::string_view(parent->trace_id.data(), 32), good.substr(3, 32));
  EXPECT_EQ(std::string_view(parent->span_id.data(), 16), good.substr(36, 16));
  EXPECT_TRUE(parent->is_sampled);
  EXPECT_FALSE(parse_trace_parent(good.substr(0, 53) + "00")->is_sampled);
  EXPECT_TRUE(parse_trace_parent(good.substr(0, 53) + "0b")->is_sampled);
  EXPECT_TRUE(parse_trace_parent("01" + good.substr(2) + "-more"));
  for (const std::string& bad : {std::string(), good.substr(0, 54), good + "-more", "ff" + good.substr(2),
                                 "00-00000000000000000000000000000000-00f067aa0ba902b7-01" + std::string(),
                                 "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01" + std::string(),
                                 "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01" + std::string(),
                                 "00_" + good.substr(3), "01" + good.substr(2) + "x"}) {
    EXPECT_FALSE(parse_trace_parent(bad)) << bad;
  }
}

}  // namespace
}  // namespace weir::protocol
