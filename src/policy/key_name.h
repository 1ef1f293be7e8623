// The name of a rule's key, for people, made from its bytes: `ip=192.0.2.1`, `user=42,path=/api/search`.
//
// Whoever counts keys need not keep texts: a key says by itself what it is made of (docs/configuration.md, "Keys").
// Anything but printable ASCII is escaped. Pure; any thread. Tested by key_name_test.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy.h"

namespace weir {

// How a value that a request brought is shown.
using ShowValue = std::function<std::string(std::string_view)>;

// As it is, what is not printable as \x0a, and the comma as well.
std::string escaped(std::string_view value);

// The part of a limit's key that is not the same for all: without the mark of rules' keys (key_space.h), the rule's
// name and the limit's suffix.
std::string_view key_body(std::string_view key, std::string_view suffix);

// key_name()
//
// `body` is a key's body, perhaps cut off; `per` what its rule counts by, `identity` the policy's. Empty if the key was
// made by something else than this `per`.
std::string key_name(std::string_view body, const std::vector<Dimension>& per, const std::vector<Dimension>& identity,
                     const ShowValue& show);

}  // namespace weir
