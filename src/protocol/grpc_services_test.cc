// Tests what a tool requests from an unknown server, and the responses.
#include "protocol/grpc_services.h"

#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include <map>

namespace weir::protocol {
namespace {

const std::string kRls = "envoy.service.ratelimit.v3.RateLimitService";

std::string question(std::uint32_t field, const std::string& name) {
  std::string out;
  protozero::pbf_writer(out).add_string(field, name);
  return out;
}

// Returns the fields of the response by number; the last one of each.
std::map<std::uint32_t, std::string> ask(const std::string& request) {
  static const Reflection reflection;
  std::string out;
  const auto answered = reflection.answer(request, out);
  EXPECT_TRUE(answered) << answered.error().message;
  std::map<std::uint32_t, std::string> fields;
  protozero::pbf_reader reader(out);
  while (reader.next()) {
    const std::uint32_t field = reader.tag();
    fields[field] = reader.get_string();
  }
  return fields;
}

// Returns the names of the files in the response.
std::vector<std::string> files(const std::string& request) {
  std::vector<std::string> names;
  const std::string response = ask(request)[4];
  protozero::pbf_reader reader(response);
  while (reader.next(1)) {
    protozero::pbf_reader file = reader.get_message();
    if (file.next(1)) names.push_back(file.get_string());
  }
  return names;
}

TEST(Reflection, ListsServicesForEveryArgument) {
  for (const char* dummy : {"", "*"}) {
    const std::string list = ask(question(7, dummy))[6];
    for (const std::string& name :
         {kRls, std::string("grpc.health.v1.Health"), std::string("grpc.reflection.v1.ServerReflection"),
          std::string("grpc.reflection.v1alpha.ServerReflection")}) {
      EXPECT_NE(list.find(name), std::string::npos) << name;
    }
  }
}

TEST(Reflection, SendsAFileWithAllThatItImports) {
  const std::vector<std::string> all = files(question(3, "envoy/service/ratelimit/v3/rls.proto"));
  EXPECT_EQ(all.size(), 8u);
  EXPECT_EQ(all.at(0), "envoy/service/ratelimit/v3/rls.proto");
  for (const char* name :
       {"envoy/config/core/v3/base.proto", "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
        "envoy/type/v3/ratelimit_unit.proto", "google/protobuf/duration.proto", "google/protobuf/struct.proto",
        "google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"}) {
    EXPECT_NE(std::find(all.begin(), all.end(), name), all.end()) << name;
  }
}

TEST(Reflection, FindsTheFileOfASymbol) {
  for (const std::string& symbol :
       {kRls, kRls + ".ShouldRateLimit", std::string("envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit")}) {
    EXPECT_EQ(files(question(4, symbol)).at(0), "envoy/service/ratelimit/v3/rls.proto") << symbol;
  }
  EXPECT_EQ(files(question(4, "envoy.type.v3.RateLimitUnit")).at(0), "envoy/type/v3/ratelimit_unit.proto");
}

TEST(Reflection, ReportsUnknownNamesAndContinues) {
  EXPECT_EQ(ask(question(4, "nothing.Here"))[7].substr(0, 2), "\x08\x05");
  EXPECT_EQ(ask(question(3, "no.proto"))[7].substr(0, 2), "\x08\x05");
  EXPECT_EQ(ask(question(5, ""))[7].substr(0, 2), "\x08\x0c");
  EXPECT_EQ(ask(question(6, "a.B"))[7].substr(0, 2), "\x08\x0c");
  EXPECT_EQ(ask("")[7].substr(0, 2), "\x08\x03");
}

TEST(Reflection, RepeatsTheRequest) {
  std::string request = question(1, "host:1") + question(7, "*");
  auto answer = ask(request);
  EXPECT_EQ(answer[1], "host:1");
  EXPECT_EQ(answer[2], request);
}

TEST(Reflection, RefusesAMalformedRequest) {
  std::string out;
  EXPECT_FALSE(Reflection().answer("\x0a\x7f", out));
}

TEST(Health, ReadsTheRequestedName) {
  EXPECT_EQ(read_health_request("\x0a\x01x"), "x");
  EXPECT_EQ(read_health_request(""), "");
  EXPECT_EQ(read_health_request("\x10\x01\x0a\x01x"), "x");
  EXPECT_FALSE(read_health_request("\x0a\x02x"));
}

TEST(Health, AnswersInTwoBytes) {
  std::string out;
  append_health_response(ServingStatus::serving, out);
  append_health_response(ServingStatus::not_serving, out);
  EXPECT_EQ(out, "\x08\x01\x08\x02");
}

TEST(Health, ListsEveryName) {
  std::string out;
  append_health_list(ServingStatus::serving, out);
  EXPECT_TRUE(out.starts_with(std::string("\x0a\x06\x0a\x00\x12\x02\x08\x01", 8)));
  EXPECT_TRUE(out.ends_with(std::string("\x0a\x0f\x0a\x09ratelimit\x12\x02\x08\x01")));
  EXPECT_TRUE(is_health_service("ratelimit"));
  EXPECT_FALSE(is_health_service("ratelimits"));
}

}  // namespace
}  // namespace weir::protocol
