// The rate limit service's messages in protobuf's JSON, as POST /json of envoyproxy/ratelimit accepts and returns
// them.
//
//   {"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"42"}],"hitsAddend":"2"}]}
//
// Names have either spelling, hitsAddend or hits_addend. Numbers may be numbers or texts, and enums names or numbers.
// A null means absent. An unknown or duplicate field is an error that names it. Pure; any thread may call it. Tested
// by rls_json_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "protocol/json_reader.h"
#include "protocol/rls.h"
#include "weir/result.h"

namespace weir::protocol {

// A request, and its texts that are not views of the body. The body must outlive it. Reuse it to avoid allocations.
struct RlsJsonRequest {
  RlsRequest request{};
  JsonTexts texts{};
};

// The bounds are those of the protobuf form.
Result<void> read_rls_json(std::string_view body, RlsJsonRequest& out);

// Omits fields with default values, as protobuf does. Writes one line, without a line end.
void append_rls_json(const RlsResponse& response, std::string& out);

}  // namespace weir::protocol
