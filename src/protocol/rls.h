// The messages of Envoy's rate limit service, version 3, as plain values, and their bytes in protobuf.
//
// A request is views of the message that it was read from, which must outlive it; it is read into room that is used
// again, so that a request costs no heap once the room has grown. Unknown fields are skipped, fields may come in any
// order, and of a field given twice the last counts, as protobuf has it. proto/envoy/service/ratelimit/v3/rls.proto is
// the shape of it all. Pure; any thread. Tested by rls_test.cc and fuzz/rls_proto.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/request.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

inline constexpr std::size_t kRlsDescriptorsMax = 64;
inline constexpr std::size_t kRlsEntriesMax = 64;  // of each

// The name under which every descriptor has its domain as its first entry.
inline constexpr std::string_view kRlsDomainEntry = "domain";

enum class RlsCode : std::uint8_t { unknown = 0, ok = 1, over_limit = 2 };
enum class RlsUnit : std::uint8_t { unknown = 0, second, minute, hour, day, month, year, week };

// In place of what is configured. A number that is no unit is `unknown`.
struct RlsOverride {
  std::uint32_t requests_per_unit = 0;
  RlsUnit unit = RlsUnit::unknown;
  friend bool operator==(const RlsOverride&, const RlsOverride&) = default;
};

struct RlsDescriptor {
  std::uint32_t first = 0;  // of RlsRequest::entries: the domain's, then its own
  std::uint32_t count = 0;  // of its own
  std::optional<RlsOverride> limit{};
  std::optional<std::uint64_t> hits_addend{};  // present and 0: asked only
  bool is_negative_hits = false;               // given back
};

struct RlsRequest {
  std::string_view domain{};
  std::vector<RlsDescriptor> descriptors{};
  std::vector<Attribute> entries{};  // of all descriptors, one after the other
  std::uint32_t hits_addend = 0;     // 0 counts as 1

  std::span<const Attribute> entries_of(const RlsDescriptor& descriptor) const {
    return std::span(entries).subspan(descriptor.first + 1, descriptor.count);
  }
  // The same behind an entry `domain`.
  std::span<const Attribute> all_of(const RlsDescriptor& descriptor) const {
    return std::span(entries).subspan(descriptor.first, descriptor.count + 1);
  }

  // How a request is put together, by whoever reads one: begin, then for each descriptor its entries, then end.
  void begin();
  RlsDescriptor& add_descriptor();
  void add_entry(Attribute entry);  // to the descriptor that was added last
  void end();                       // the domain is known now
};

struct RlsLimit {
  std::uint32_t requests_per_unit = 0;
  RlsUnit unit = RlsUnit::unknown;
  std::string_view name{};
};

struct RlsStatus {
  RlsCode code = RlsCode::ok;
  std::optional<RlsLimit> current_limit{};  // none: no rule is about it
  std::uint32_t limit_remaining = 0;
  std::optional<std::int64_t> seconds_until_reset{};
};

struct RlsHeader {
  std::string_view key;
  std::string_view value;
};

// What Envoy hands to its other filters and to access logs: a Struct with these members.
struct RlsMetadata {
  std::string_view rule{};
  bool allowed = true;
  std::int64_t remaining = 0;
  std::optional<std::int64_t> retry_after{};  // seconds
  MadeBy made = MadeBy::here;                 // told of a fleet only
};

struct RlsResponse {
  RlsCode overall_code = RlsCode::ok;
  std::vector<RlsStatus> statuses{};          // one for each descriptor, in their order
  std::vector<RlsHeader> response_headers{};  // to the client, whether it passes or not
  std::string_view raw_body{};                // to the client, if it does not pass
  std::optional<RlsMetadata> dynamic_metadata{};
};

// read_rls_request()
//
// out_of_range for more descriptors or entries than there may be, invalid_argument for what is no such message.
Result<void> read_rls_request(std::string_view message, RlsRequest& out);

// Appends the message.
void append_rls_response(const RlsResponse& response, std::string& out);

// What a client does, and tests: the other direction.
void append_rls_request(const RlsRequest& request, std::string& out);

// Why there are too many of them.
Error too_many_descriptors();
Error too_many_entries();

}  // namespace weir
