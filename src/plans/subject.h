// Splits a subject into kind and value: user:42 has the kind `user` and the value `42`. For api_key:sha256:… the
// value is the hash.
//
// Also bounds what a database may return: no plan needs a name as long as a page. Pure; any thread may call it.
// Tested by sqlite_source_test.cc.
#pragma once

#include <cstddef>
#include <string_view>

namespace weir {

inline constexpr std::size_t kSubjectBytesMax = 1024;
inline constexpr std::size_t kPlanTextMax = 1024;

struct SubjectParts {
  std::string_view kind, value;
};

inline SubjectParts parts_of_subject(std::string_view subject) {
  const std::size_t colon = subject.find(':');
  if (colon == subject.npos) return {"", subject};
  SubjectParts parts{subject.substr(0, colon), subject.substr(colon + 1)};
  constexpr std::string_view kHash = "sha256:";
  if (parts.kind == "api_key" && parts.value.starts_with(kHash)) parts.value.remove_prefix(kHash.size());
  return parts;
}

// Whether the text is valid UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
inline bool is_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned first = byte(i), second = byte(i + 1);
    const std::size_t more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    const bool is_out = (first >= 0x80 && first < 0xC2) || first > 0xF4 || (first == 0xE0 && second < 0xA0) ||
                        (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
                        (first == 0xF4 && second > 0x8F);
    if (is_out) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return false;
    }
    i += 1 + more;
  }
  return true;
}

}  // namespace weir
