// Decodes the key of a rule into a display name: `ip:192.0.2.1`, `user:42,path:/api/search`.
//
// Code that counts keys need not store names, because a key encodes its own parts (docs/configuration.md, "Keys").
// Everything except printable ASCII is escaped. Pure; any thread may call it. Tested by key_name_test.cc.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy.h"

namespace weir::policy {

// How to print a value that came from a request.
using ShowValue = std::function<std::string(std::string_view)>;

// Returns the value with non-printable bytes, backslashes and commas written as \x0a.
std::string escaped(std::string_view value);

// An attribute and its value, as commands take subjects: user:42, and header:x-org=acme.
std::string attribute_text(const Dimension& dimension, std::string_view value);

// Returns the part of a limit's key that differs between clients: without the leading byte of rule keys
// (key_space.h), the rule's name and the limit's suffix.
std::string_view key_body(std::string_view key, std::string_view suffix);

// key_name()
//
// `body` is a key's body and may be truncated. `per` is what its rule counts by, `identity` is the policy's. Returns
// an empty text if the key was made under another `per`.
std::string key_name(std::string_view body, const std::vector<Dimension>& per, const std::vector<Dimension>& identity,
                     const ShowValue& show);

}  // namespace weir::policy
