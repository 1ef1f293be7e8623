// The subject of a rule's key: the client that it counts, as `user:42`, `api_key:sha256:…` or `ip:2001:db8::/64`.
//
// The subject is the first attribute of the rule's `per` that identifies a client: user, API key, tenant, address, or
// the identity that stood for one of these. If there is none, it is the first header, query parameter or descriptor
// entry. Its id is a few bytes (kind, name, value), made from a key without heap memory. Text and id convert to each
// other without loss, whatever bytes a client sent. Pure; any thread may call it. Tested by subject_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "policy/key_arena.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir::policy {

inline constexpr std::size_t kSubjectBytesMax = 2 + 2 * (1 + kPartBytesMax);
using SubjectBuffer = std::array<char, kSubjectBytesMax>;

// subject_of()
//
// Returns the id, stored in `buffer`. `body` is a key's body, see key_name.h. `per` is what its rule counts by,
// `identity` is the policy's. Empty if the rule counts by no subject.
std::string_view subject_of(std::string_view body, const std::vector<Dimension>& per,
                            const std::vector<Dimension>& identity, SubjectBuffer& buffer);

// The id with its value replaced by a hash, for operators who must not store client identities. A hash stays as it
// is.
std::string hashed_subject(std::string_view id);

// subject_text(), parse_subject()
//
// `*` is the subject of rules that count all clients together. Non-printable bytes are written as \x0a.
// parse_subject() takes an IPv6 address without a prefix as its /64, as rules do, and replaces an API key by its
// hash.
std::string subject_text(std::string_view id);
Result<std::string> parse_subject(std::string_view text);

}  // namespace weir::policy
