// Helpers for reading protobuf with protozero: the wire type of texts and messages, and texts as string views. Pure;
// any thread may call it.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <string_view>

namespace weir {

inline constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;

// Returns the reader's current field, as a view of the reader's bytes.
inline std::string_view text_of(protozero::pbf_reader& reader) {
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

}  // namespace weir
