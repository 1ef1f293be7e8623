// Tests the golden vectors of the rate limit service byte by byte, odd but valid messages, and malformed ones.
#include "protocol/rls.h"

#include <gtest/gtest.h>

namespace weir::protocol {
namespace {

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kHex[byte >> 4], kHex[byte & 15]};
  }
  return hex;
}

std::string response_hex(const RlsResponse& response) {
  std::string bytes;
  append_rls_response(response, bytes);
  return to_hex(bytes);
}

class RlsRequests : public testing::Test {
 protected:
  void read(std::string_view hex) {
    bytes = bytes_of(hex);
    const auto done = read_rls_request(bytes, request);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::string again() const {
    std::string out;
    append_rls_request(request, out);
    return to_hex(out);
  }

  std::string bytes;
  RlsRequest request;
};

constexpr std::string_view kOne = "0a0465646765121c0a1a0a0e72656d6f74655f61646472657373120831302e302e302e31";
constexpr std::string_view kTwo =
    "0a046564676512220a0a0a0475736572120275310a0a0a047061746812022f611204082a10031a02080512140a100a0b67656e657269635f6b"
    "65791201781a001802";

TEST_F(RlsRequests, HaveADomainAndADescriptor) {
  read(kOne);
  EXPECT_EQ(request.domain, "edge");
  ASSERT_EQ(request.descriptors.size(), 1u);
  const auto entries = request.entries_of(request.descriptors[0]);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "remote_address");
  EXPECT_EQ(entries[0].value, "10.0.0.1");
  EXPECT_EQ(request.hits_addend, 0u);
  EXPECT_FALSE(request.descriptors[0].limit);
  EXPECT_FALSE(request.descriptors[0].hits_addend);
  EXPECT_EQ(again(), kOne);
}

TEST_F(RlsRequests, HaveOverridesAndHitsOfTheirOwn) {
  read(kTwo);
  ASSERT_EQ(request.descriptors.size(), 2u);
  const RlsDescriptor &first = request.descriptors[0], &second = request.descriptors[1];
  EXPECT_EQ(first.limit, (RlsOverride{42, RlsUnit::hour}));
  EXPECT_EQ(first.hits_addend, 5u);
  EXPECT_EQ(request.entries_of(first)[1].value, "/a");
  EXPECT_EQ(second.hits_addend, 0u) << "present and 0 is not absent";
  EXPECT_FALSE(second.limit);
  EXPECT_EQ(request.entries_of(second)[0].name, "generic_key");
  EXPECT_EQ(request.hits_addend, 2u);
  EXPECT_EQ(again(), kTwo);
}

TEST_F(RlsRequests, RefundHits) {
  read("0a0164120e0a060a016b1201761a0208032001");
  EXPECT_TRUE(request.descriptors[0].is_negative_hits);
  EXPECT_EQ(request.descriptors[0].hits_addend, 3u);
  EXPECT_EQ(again(), "0a0164120e0a060a016b1201761a0208032001");
}

TEST_F(RlsRequests, AreWrittenWithEmptyMessages) {
  for (const std::string_view empty : {"1200", "12021200", "12021a00"}) {
    read(empty);
    EXPECT_EQ(again(), empty);
  }
}

TEST_F(RlsRequests, NameTheirDomainAsAnEntryEvenIfItComesLast) {
  read(
      "12080a060a016b120176"
      "12080a060a016b120177"
      "0a0164");
  for (const RlsDescriptor& descriptor : request.descriptors) {
    const auto all = request.all_of(descriptor);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].name, "domain");
    EXPECT_EQ(all[0].value, "d");
  }
  EXPECT_EQ(request.all_of(request.descriptors[1])[1].value, "w");
}

TEST_F(RlsRequests, AcceptEverythingThatProtobufAllows) {
  read("0a01610a0162");  // the last of two values is used
  EXPECT_EQ(request.domain, "b");
  read("0a016498060118039a060378797a");  // unknown fields
  EXPECT_EQ(request.hits_addend, 3u);
  read("1883808080808080808000");  // more bytes than the number needs
  EXPECT_EQ(request.hits_addend, 3u);
  read(
      "0801"
      "120408011a00");  // fields of another wire type are unknown
  EXPECT_EQ(request.domain, "");
  read(
      "12041202080512"
      "0412021003");  // two descriptors, each with a partial limit
  EXPECT_EQ(request.descriptors[0].limit, (RlsOverride{5, RlsUnit::unknown}));
  read("12081202080512021003");  // one limit in two parts
  EXPECT_EQ(request.descriptors[0].limit, (RlsOverride{5, RlsUnit::hour}));
  read("120412021007");
  EXPECT_EQ(request.descriptors[0].limit->unit, RlsUnit::week);
  for (const char* nonsense : {"120412021008", "120d120b10ffffffffffffffffff01"}) {
    read(nonsense);
    EXPECT_EQ(request.descriptors[0].limit->unit, RlsUnit::unknown);
  }
  read("");
  EXPECT_TRUE(request.descriptors.empty());
}

TEST_F(RlsRequests, AreRefusedWhenTheyAreCutShort) {
  const std::string whole = bytes_of(kTwo);
  std::size_t refused = 0;
  for (std::size_t bytes_left = 0; bytes_left < whole.size(); ++bytes_left) {
    const auto read = read_rls_request(whole.substr(0, bytes_left), request);
    if (read) continue;  // cut between two fields
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    ++refused;
  }
  EXPECT_EQ(refused, whole.size() - 4);
}

TEST_F(RlsRequests, AreRefusedWhenTheyAreMalformed) {
  for (const char* wrong : {"07", "00", "0b", "0aff", "18ffffffffffffffffffff01", "1203 0a0501"}) {
    EXPECT_FALSE(read_rls_request(bytes_of(wrong), request)) << wrong;
  }
}

TEST_F(RlsRequests, HaveBounds) {
  const std::string descriptor = bytes_of("12080a060a016b120176");
  std::string many;
  for (std::size_t i = 0; i < kRlsDescriptorsMax; ++i) many += descriptor;
  EXPECT_TRUE(read_rls_request(many, request));
  EXPECT_EQ(read_rls_request(many + descriptor, request).error().code, ErrorCode::out_of_range);

  std::string entries;
  for (std::size_t i = 0; i < kRlsEntriesMax; ++i) entries += bytes_of("0a00");
  EXPECT_TRUE(read_rls_request(bytes_of("128001") + entries, request));
  EXPECT_EQ(read_rls_request(bytes_of("128201") + entries + bytes_of("0a00"), request).error().code,
            ErrorCode::out_of_range);
}

TEST(RlsResponses, ReportALimit) {
  RlsResponse response;
  response.statuses.push_back({RlsCode::ok, RlsLimit{10, RlsUnit::minute, "per-ip"}, 9, 42});
  EXPECT_EQ(response_hex(response), "080112160801120c080a10021a067065722d697018092202082a");
}

TEST(RlsResponses, ReportADenial) {
  RlsResponse response;
  response.overall_code = RlsCode::over_limit;
  response.statuses.push_back({RlsCode::over_limit, RlsLimit{10, RlsUnit::second, ""}, 0, 1});
  response.response_headers.push_back({"retry-after", "1"});
  response.raw_body = "slow down";
  EXPECT_EQ(response_hex(response),
            "0802120c08021204080a1001220208011a100a0b72657472792d61667465721201312a09736c6f7720646f776e");
}

TEST(RlsResponses, ReportThatNoRuleApplies) {
  RlsResponse response;
  response.statuses.emplace_back();
  EXPECT_EQ(response_hex(response), "080112020801");
}

TEST(RlsResponses, CarryAStructForOtherFilters) {
  RlsResponse response;
  response.dynamic_metadata = RlsMetadata{"r", false, 2, 3};
  const std::string rule = "0a0b0a0472756c6512031a0172", allowed = "0a0d0a07616c6c6f77656412022000";
  const std::string remaining = "0a160a0972656d61696e696e671209110000000000000040";
  const std::string retry =
      "0a180a0b72657472795f6166746572120911"
      "0000000000000840";
  EXPECT_EQ(response_hex(response), "0801324e" + rule + allowed + remaining + retry);
  response.dynamic_metadata->decided_by = DecidedBy::open;  // as in a fleet
  const std::string made = "0a140a0a646563696465645f627912061a046f70656e";
  EXPECT_EQ(response_hex(response), "08013264" + rule + allowed + remaining + retry + made);
  response.dynamic_metadata->retry_after.reset();
  EXPECT_EQ(response_hex(response), "0801324a" + rule + allowed + remaining + made);
}

}  // namespace
}  // namespace weir::protocol
