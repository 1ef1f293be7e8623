// The messages of Envoy's rate limit service, version 3, as plain values, and their encoding in protobuf.
//
// A request has views of the message it was read from, which must outlive it. Reuse the request: after its memory has
// grown, reading allocates nothing. As protobuf requires, unknown fields are skipped, fields may come in any order,
// and the last of duplicate fields counts. proto/envoy/service/ratelimit/v3/rls.proto defines the messages. Pure; any
// thread may call it. Tested by rls_test.cc and fuzz/rls_proto.cc.
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

namespace weir::protocol {

inline constexpr std::size_t kRlsDescriptorsMax = 64;
inline constexpr std::size_t kRlsEntriesMax = 64;  // of each descriptor

// The name of the domain, which we add as the first entry of every descriptor.
inline constexpr std::string_view kRlsDomainEntry = "domain";

enum class RlsCode : std::uint8_t { unknown = 0, ok = 1, over_limit = 2 };
enum class RlsUnit : std::uint8_t { unknown = 0, second, minute, hour, day, month, year, week };

// A limit in the request that overrides the configured one. An invalid unit number is `unknown`.
struct RlsOverride {
  std::uint32_t requests_per_unit = 0;
  RlsUnit unit = RlsUnit::unknown;
  friend bool operator==(const RlsOverride&, const RlsOverride&) = default;
};

struct RlsDescriptor {
  std::uint32_t first = 0;  // index in RlsRequest::entries: the domain's entry, then its own
  std::uint32_t count = 0;  // number of its own entries
  std::optional<RlsOverride> limit{};
  std::optional<std::uint64_t> hits_addend{};  // present and 0: a peek
  bool is_negative_hits = false;               // a refund
};

struct RlsRequest {
  std::string_view domain{};
  std::vector<RlsDescriptor> descriptors{};
  std::vector<Attribute> entries{};  // of all descriptors, one after the other
  std::uint32_t hits_addend = 0;     // 0 means 1

  std::span<const Attribute> entries_of(const RlsDescriptor& descriptor) const {
    return std::span(entries).subspan(descriptor.first + 1, descriptor.count);
  }
  // The same, preceded by the `domain` entry.
  std::span<const Attribute> all_of(const RlsDescriptor& descriptor) const {
    return std::span(entries).subspan(descriptor.first, descriptor.count + 1);
  }

  // How parsers build a request: begin(), then for each descriptor its entries, then end().
  void begin();
  RlsDescriptor& add_descriptor();
  void add_entry(Attribute entry);  // to the last descriptor
  void end();                       // fills in the domain, which is known by now
};

struct RlsLimit {
  std::uint32_t requests_per_unit = 0;
  RlsUnit unit = RlsUnit::unknown;
  std::string_view name{};
};

struct RlsStatus {
  RlsCode code = RlsCode::ok;
  std::optional<RlsLimit> current_limit{};  // absent: no rule matched
  std::uint32_t limit_remaining = 0;
  std::optional<std::int64_t> seconds_until_reset{};
};

struct RlsHeader {
  std::string_view key;
  std::string_view value;
};

// Metadata that Envoy passes to its other filters and to access logs: a Struct with these members.
struct RlsMetadata {
  std::string_view rule{};
  bool allowed = true;
  std::int64_t remaining = 0;
  std::optional<std::int64_t> retry_after{};  // seconds
  DecidedBy decided_by = DecidedBy::here;     // sent in a fleet only
};

struct RlsResponse {
  RlsCode overall_code = RlsCode::ok;
  std::vector<RlsStatus> statuses{};          // one for each descriptor, in order
  std::vector<RlsHeader> response_headers{};  // sent to the client, whether the request is allowed or not
  std::string_view raw_body{};                // sent to the client if the request is denied
  std::optional<RlsMetadata> dynamic_metadata{};
};

// read_rls_request()
//
// Fails with out_of_range for too many descriptors or entries, and with invalid_argument for a malformed message.
Result<void> read_rls_request(std::string_view message, RlsRequest& out);

// Appends the message.
void append_rls_response(const RlsResponse& response, std::string& out);

// The other direction, as a client or a test needs it.
void append_rls_request(const RlsRequest& request, std::string& out);

// The errors for too many of them.
Error too_many_descriptors();
Error too_many_entries();

}  // namespace weir::protocol
