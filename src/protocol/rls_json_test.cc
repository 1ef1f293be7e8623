// Tests protobuf's JSON of the rate limit service: both spellings, every kind of number, refusals, and output.
#include "protocol/rls_json.h"

#include <gtest/gtest.h>

namespace weir::protocol {
namespace {

class RlsJson : public testing::Test {
 protected:
  void read(std::string_view body) {
    const auto done = read_rls_json(body, out);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::string refusal(std::string_view body) {
    const auto done = read_rls_json(body, out);
    return done ? "" : done.error().message;
  }

  RlsJsonRequest out;
  RlsRequest& request = out.request;
};

TEST_F(RlsJson, ReadsEitherSpelling) {
  for (const char* body :
       {R"({"domain":"d","hitsAddend":4,"descriptors":[{"entries":[{"key":"user","value":"a\u00e4"},{"key":"k"}],)"
        R"("limit":{"requestsPerUnit":9,"unit":"WEEK"},"hitsAddend":"0","isNegativeHits":true}]})",
        R"({"descriptors":[{"is_negative_hits":true,"hits_addend":0,"limit":{"unit":7,"requests_per_unit":"9"},)"
        R"("entries":[{"value":"aä","key":"user"},{"key":"k","value":null}]}],"hits_addend":4.0,"domain":"d"})"}) {
    read(body);
    EXPECT_EQ(request.domain, "d");
    EXPECT_EQ(request.hits_addend, 4u);
    ASSERT_EQ(request.descriptors.size(), 1u);
    const RlsDescriptor& descriptor = request.descriptors[0];
    EXPECT_EQ(descriptor.limit, (RlsOverride{9, RlsUnit::week}));
    EXPECT_EQ(descriptor.hits_addend, 0u);
    EXPECT_TRUE(descriptor.is_negative_hits);
    const auto entries = request.all_of(descriptor);
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries[0].value, "d");
    EXPECT_EQ(entries[1].value, "a\xc3\xa4");
    EXPECT_EQ(entries[2].name, "k");
  }
}

TEST_F(RlsJson, TakesNullAsAbsent) {
  read(R"({"domain":null,"descriptors":[{"hitsAddend":null,"limit":null}]})");
  EXPECT_FALSE(request.descriptors[0].hits_addend);
  EXPECT_FALSE(request.descriptors[0].limit);
  read("{}");
  EXPECT_TRUE(request.descriptors.empty());
}

TEST_F(RlsJson, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(refusal(R"({"domian":"d"})"), "unknown field 'domian' in the request");
  EXPECT_EQ(refusal(R"({"descriptors":[{"entries":[{"kye":"d"}]}]})"), "unknown field 'kye' in an entry");
  EXPECT_EQ(refusal(R"({"hitsAddend":1,"hits_addend":1})"), "duplicate field 'hits_addend'");
  EXPECT_NE(refusal(R"({"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]})"), "");
}

TEST_F(RlsJson, RefusesValuesOfAnotherKind) {
  for (const char* body : {R"([])", R"({"domain":1})", R"({"descriptors":{}})", R"({"descriptors":[1]})",
                           R"({"hitsAddend":-1})", R"({"hitsAddend":1.5})", R"({"hitsAddend":4294967296})",
                           R"({"hitsAddend":"x"})", R"({"hitsAddend":""})", R"({"hitsAddend":true})",
                           R"({"descriptors":[{"isNegativeHits":1}]})", R"({"descriptors":[{"hitsAddend":1e300}]})",
                           R"({"descriptors":[{"entries":[{"key":1}]}]})", "", "{", "{}}", "{\"domain\":\"\xff\"}"}) {
    EXPECT_NE(refusal(body), "") << body;
  }
}

TEST_F(RlsJson, HasTheBoundsOfTheProtobufForm) {
  std::string descriptors = "{}", entries = "{}";
  for (std::size_t i = 1; i < kRlsDescriptorsMax; ++i) descriptors += ",{}";
  for (std::size_t i = 1; i < kRlsEntriesMax; ++i) entries += ",{}";
  EXPECT_EQ(refusal("{\"descriptors\":[" + descriptors + "]}"), "");
  EXPECT_NE(refusal("{\"descriptors\":[{}," + descriptors + "]}"), "");
  EXPECT_EQ(refusal("{\"descriptors\":[{\"entries\":[" + entries + "]}]}"), "");
  EXPECT_NE(refusal("{\"descriptors\":[{\"entries\":[{}," + entries + "]}]}"), "");
  EXPECT_NE(refusal(std::string(1'000, '[')), "");
}

TEST_F(RlsJson, PrintsAsProtobufDoes) {
  RlsResponse response;
  response.statuses.emplace_back();
  response.statuses.push_back({RlsCode::ok, RlsLimit{10, RlsUnit::minute, "a\"b"}, 9, 42});
  std::string text;
  append_rls_json(response, text);
  EXPECT_EQ(text, R"({"overallCode":"OK","statuses":[{"code":"OK"},{"code":"OK","currentLimit":{"requestsPerUnit":10,)"
                  R"("unit":"MINUTE","name":"a\"b"},"limitRemaining":9,"durationUntilReset":"42s"}]})");
}

TEST_F(RlsJson, PrintsADenialWithItsBodyInBase64) {
  RlsResponse response;
  response.overall_code = RlsCode::over_limit;
  response.statuses.push_back({RlsCode::over_limit, RlsLimit{0, RlsUnit::unknown, ""}, 0, 1});
  response.response_headers.push_back({"retry-after", "1"});
  response.raw_body = "slow down\xff";
  response.dynamic_metadata = RlsMetadata{"r", false, 0, 1};
  std::string text;
  append_rls_json(response, text);
  EXPECT_EQ(text, R"({"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{},)"
                  R"("durationUntilReset":"1s"}],"responseHeadersToAdd":[{"key":"retry-after","value":"1"}],)"
                  R"("rawBody":"c2xvdyBkb3du/w==","dynamicMetadata":{"rule":"r","allowed":false,"remaining":0,)"
                  R"("retry_after":1}})");
}

TEST_F(RlsJson, SaysInAFleetHowTheDecisionWasMade) {
  RlsResponse response;
  response.dynamic_metadata = RlsMetadata{"r", true, 3, std::nullopt, DecidedBy::strict};
  std::string text;
  append_rls_json(response, text);
  EXPECT_EQ(text, R"({"overallCode":"OK",)"
                  R"("dynamicMetadata":{"rule":"r","allowed":true,"remaining":3,"decided_by":"strict"}})");
}

}  // namespace
}  // namespace weir::protocol
