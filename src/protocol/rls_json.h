// The messages of the rate limit service in protobuf's JSON: what POST /json of envoyproxy/ratelimit takes and gives.
//
//   {"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"42"}],"hitsAddend":"2"}]}
//
// Names in either spelling, hitsAddend or hits_addend; numbers as numbers or texts; enums by name or number; null is
// absent; what is unknown or there twice is an error that names it. Pure; any thread. Tested by rls_json_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "protocol/json_reader.h"
#include "protocol/rls.h"
#include "weir/result.h"

namespace weir {

// A request, and those of its texts that are not views of the body, which must outlive it. Used again for its room.
struct RlsJsonRequest {
  RlsRequest request{};
  JsonTexts texts{};
};

// The same bounds as of the protobuf form.
Result<void> read_rls_json(std::string_view body, RlsJsonRequest& out);

// Fields that have their default are left out, as protobuf does it. One line, without its end.
void append_rls_json(const RlsResponse& response, std::string& out);

}  // namespace weir
