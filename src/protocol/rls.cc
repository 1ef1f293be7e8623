// Encodes the rate limit service's messages with protozero. See rls.h.
//
// protozero throws on malformed bytes; no exception leaves this file. A field is identified by its number and its
// wire type. A field with another wire type is unknown, and is skipped.
#include "protocol/rls.h"

#include <protozero/pbf_writer.hpp>

#include <exception>

#include "protocol/protobuf_read.h"

namespace weir::protocol {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using protozero::tag_and_type;

constexpr auto kVarint = pbf_wire_type::varint;

RlsUnit unit_of(std::int32_t number) {
  const bool is_known = number > 0 && number <= static_cast<std::int32_t>(RlsUnit::week);
  return is_known ? static_cast<RlsUnit>(number) : RlsUnit::unknown;
}

Attribute read_entry(pbf_reader reader) {
  Attribute entry;
  while (reader.next()) {
    if (!take_text(reader, 1, entry.name) && !take_text(reader, 2, entry.value)) reader.skip();
  }
  return entry;
}

// A message sent in two parts is merged, so keep what was read before.
void read_override(pbf_reader reader, RlsOverride& out) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, kVarint):
        out.requests_per_unit = reader.get_uint32();
        break;
      case tag_and_type(2, kVarint):
        out.unit = unit_of(reader.get_enum());
        break;
      default:
        reader.skip();
    }
  }
}

void read_uint64_value(pbf_reader reader, std::uint64_t& out) {
  while (reader.next()) {
    if (reader.tag_and_type() == tag_and_type(1, kVarint)) {
      out = reader.get_uint64();
    } else {
      reader.skip();
    }
  }
}

template <class T>
T& present(std::optional<T>& value) {
  return value ? *value : value.emplace();
}

bool read_descriptor(pbf_reader reader, RlsRequest& out) {
  RlsDescriptor& descriptor = out.add_descriptor();
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, kBytes):
        if (descriptor.count == kRlsEntriesMax) return false;
        out.add_entry(read_entry(reader.get_message()));
        break;
      case tag_and_type(2, kBytes):
        read_override(reader.get_message(), present(descriptor.limit));
        break;
      case tag_and_type(3, kBytes):
        read_uint64_value(reader.get_message(), present(descriptor.hits_addend));
        break;
      case tag_and_type(4, kVarint):
        descriptor.is_negative_hits = reader.get_uint64() != 0;  // get_bool() may read beyond the end
        break;
      default:
        reader.skip();
    }
  }
  return true;
}

Result<void> read_request(pbf_reader reader, RlsRequest& out) {
  while (reader.next()) {
    switch (reader.tag_and_type()) {
      case tag_and_type(1, kBytes):
        out.domain = text_of(reader);
        break;
      case tag_and_type(2, kBytes):
        if (out.descriptors.size() == kRlsDescriptorsMax) return fail(too_many_descriptors());
        if (!read_descriptor(reader.get_message(), out)) return fail(too_many_entries());
        break;
      case tag_and_type(3, kVarint):
        out.hits_addend = reader.get_uint32();
        break;
      default:
        reader.skip();
    }
  }
  return {};
}

void add_text(pbf_writer& writer, std::uint32_t tag, std::string_view value) {
  if (!value.empty()) writer.add_bytes(tag, value.data(), value.size());
}
void add_number(pbf_writer& writer, std::uint32_t tag, std::uint64_t value) {
  if (value != 0) writer.add_uint64(tag, value);
}

// Writes a message within another; `add` writes its fields. The message is written even if it is empty, which
// protozero's own submessages would omit.
template <class Add>
void add_message(pbf_writer& writer, std::string& bytes, std::uint32_t tag, Add add) {
  const std::size_t before = bytes.size();
  {
    pbf_writer message(writer, tag);
    add(message);
  }
  if (bytes.size() == before) writer.add_message(tag, "", 0);
}

void add_status(pbf_writer& response, std::string& bytes, const RlsStatus& status) {
  pbf_writer out(response, 2);
  out.add_enum(1, static_cast<std::int32_t>(status.code));
  if (status.current_limit) {
    add_message(out, bytes, 2, [&](pbf_writer& limit) {
      add_number(limit, 1, status.current_limit->requests_per_unit);
      add_number(limit, 2, static_cast<std::uint64_t>(status.current_limit->unit));
      add_text(limit, 3, status.current_limit->name);
    });
  }
  add_number(out, 3, status.limit_remaining);
  if (status.seconds_until_reset) {
    add_message(out, bytes, 4, [&](pbf_writer& duration) {
      add_number(duration, 1, static_cast<std::uint64_t>(*status.seconds_until_reset));
    });
  }
}

void add_descriptor(pbf_writer& out, std::string& bytes, const RlsRequest& request, const RlsDescriptor& descriptor) {
  for (const Attribute& entry : request.entries_of(descriptor)) {
    pbf_writer pair(out, 1);
    pair.add_bytes(1, entry.name.data(), entry.name.size());
    add_text(pair, 2, entry.value);
  }
  if (descriptor.limit) {
    add_message(out, bytes, 2, [&](pbf_writer& limit) {
      add_number(limit, 1, descriptor.limit->requests_per_unit);
      add_number(limit, 2, static_cast<std::uint64_t>(descriptor.limit->unit));
    });
  }
  if (descriptor.hits_addend) {
    add_message(out, bytes, 3, [&](pbf_writer& value) { add_number(value, 1, *descriptor.hits_addend); });
  }
  if (descriptor.is_negative_hits) out.add_bool(4, true);
}

// Writes a member of a Struct: a map entry whose value is a message with one field.
template <class Add>
void add_member(pbf_writer& members, std::string_view name, Add add) {
  pbf_writer entry(members, 1);
  entry.add_bytes(1, name.data(), name.size());
  pbf_writer value(entry, 2);
  add(value);
}

void add_metadata(pbf_writer& response, const RlsMetadata& metadata) {
  pbf_writer members(response, 6);
  add_member(members, "rule", [&](pbf_writer& out) { out.add_bytes(3, metadata.rule.data(), metadata.rule.size()); });
  add_member(members, "allowed", [&](pbf_writer& out) { out.add_bool(4, metadata.allowed); });
  add_member(members, "remaining",
             [&](pbf_writer& out) { out.add_double(2, static_cast<double>(metadata.remaining)); });
  if (metadata.retry_after) {
    add_member(members, "retry_after",
               [&](pbf_writer& out) { out.add_double(2, static_cast<double>(*metadata.retry_after)); });
  }
  if (metadata.decided_by == DecidedBy::here) return;
  const std::string_view decided_by = weir::to_string(metadata.decided_by);
  add_member(members, "decided_by", [&](pbf_writer& out) { out.add_bytes(3, decided_by.data(), decided_by.size()); });
}

}  // namespace

void RlsRequest::begin() {
  domain = {};
  descriptors.clear();
  entries.clear();
  hits_addend = 0;
}

RlsDescriptor& RlsRequest::add_descriptor() {
  RlsDescriptor& descriptor = descriptors.emplace_back();
  descriptor.first = static_cast<std::uint32_t>(entries.size());
  entries.push_back({kRlsDomainEntry, {}});
  return descriptor;
}

void RlsRequest::add_entry(Attribute entry) {
  entries.push_back(entry);
  ++descriptors.back().count;
}

void RlsRequest::end() {
  for (const RlsDescriptor& descriptor : descriptors) entries[descriptor.first].value = domain;
}

Result<void> read_rls_request(std::string_view message, RlsRequest& out) {
  out.begin();
  try {
    if (auto read = read_request(pbf_reader(message.data(), message.size()), out); !read) return read;
  } catch (const protozero::exception& wrong) {
    return fail(ErrorCode::invalid_argument, std::string("invalid RateLimitRequest: ") + wrong.what());
  } catch (const std::exception&) {
    return fail(ErrorCode::exhausted, "out of memory");
  }
  out.end();
  return {};
}

void append_rls_response(const RlsResponse& response, std::string& out) {
  pbf_writer writer(out);
  writer.add_enum(1, static_cast<std::int32_t>(response.overall_code));
  for (const RlsStatus& status : response.statuses) add_status(writer, out, status);
  for (const RlsHeader& header : response.response_headers) {
    pbf_writer added(writer, 3);
    added.add_bytes(1, header.key.data(), header.key.size());
    add_text(added, 2, header.value);
  }
  add_text(writer, 5, response.raw_body);
  if (response.dynamic_metadata) add_metadata(writer, *response.dynamic_metadata);
}

void append_rls_request(const RlsRequest& request, std::string& out) {
  pbf_writer writer(out);
  add_text(writer, 1, request.domain);
  for (const RlsDescriptor& descriptor : request.descriptors) {
    add_message(writer, out, 2, [&](pbf_writer& added) { add_descriptor(added, out, request, descriptor); });
  }
  add_number(writer, 3, request.hits_addend);
}

Error too_many_descriptors() {
  return {ErrorCode::out_of_range,
          "a request has at most " + std::to_string(kRlsDescriptorsMax) + " descriptors; send it in several calls"};
}

Error too_many_entries() {
  return {ErrorCode::out_of_range, "a descriptor has at most " + std::to_string(kRlsEntriesMax) + " entries"};
}

}  // namespace weir::protocol
