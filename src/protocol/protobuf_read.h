// Helpers for reading protobuf with protozero: the wire type of texts and messages, and texts as string views.
//
// Pure; any thread may call it. Tested by rls_test.cc and grpc_services_test.cc.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string_view>

namespace weir::protocol {

inline constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;

// Returns the reader's current field, as a view of the reader's bytes.
inline std::string_view text_of(protozero::pbf_reader& reader) {
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

// If the reader's current field is a text with this number, reads it into `out`. Returns whether it did.
inline bool take_text(protozero::pbf_reader& reader, std::uint32_t number, std::string_view& out) {
  if (reader.tag_and_type() != protozero::tag_and_type(number, kBytes)) return false;
  out = text_of(reader);
  return true;
}

}  // namespace weir::protocol
