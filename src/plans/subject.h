// A subject's two parts: user:42 is of the kind `user` and has the value `42`. Of api_key:sha256:… it is the hash.
//
// Also what a database may say at most: nobody has a plan with a name of a page. Pure; any thread. Tested by
// sqlite_source_test.cc.
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

}  // namespace weir
