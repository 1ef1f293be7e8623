// Whom a rule counts by, as its accounts name it: `user:42`, `api_key:sha256:…`, `ip:2001:db8::/64`.
//
// The subject of a key is the first attribute of its rule's `per` that says who: a user, an API key, a tenant, an
// address, or the identity that one of these stood for; where there is none, the first header, query parameter or
// descriptor entry. Its id is a few bytes, made from a key without asking the heap: kind, name, value. Text and id are
// each other's, whatever bytes a client sent. Pure; any thread. Tested by subject_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "policy/key_arena.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kSubjectBytesMax = 2 + 2 * (1 + kPartBytesMax);
using SubjectRoom = std::array<char, kSubjectBytesMax>;

// subject_of()
//
// The id, which lies in `room`. `body` is a key's, see key_name.h; `per` what its rule counts by, `identity` the
// policy's. Empty if it counts by nobody.
std::string_view subject_of(std::string_view body, const std::vector<Dimension>& per,
                            const std::vector<Dimension>& identity, SubjectRoom& room);

// The id with a hash where the value was, for those who must not keep whom they serve. What is a hash stays.
std::string hashed_subject(std::string_view id);

// subject_text(), parse_subject()
//
// `*` is nobody in particular, the subject of rules that count all together. What is not printable is written \x0a. An
// IPv6 address without a prefix is taken for its /64, as rules do, and an API key for its hash.
std::string subject_text(std::string_view id);
Result<std::string> parse_subject(std::string_view text);

}  // namespace weir
