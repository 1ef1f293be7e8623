// What reading protobuf by protozero needs beside it: the wire type of texts and messages, and a text as the rest of
// the sources hold one.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <string_view>

namespace weir {

inline constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;

// The field that the reader has come to; it lies in the reader's bytes.
inline std::string_view text_of(protozero::pbf_reader& reader) {
  const protozero::data_view view = reader.get_view();
  return {view.data(), view.size()};
}

}  // namespace weir
