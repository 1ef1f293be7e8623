// Reads, checks and prints the `match` of a rule. See fields.h.
//
// Every value is converted to its canonical form here, once, so matching only compares and never interprets.
#include <algorithm>
#include <array>

#include "base/ip_address.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/flow.h"
#include "policy/path_pattern.h"

namespace weir {
namespace {

constexpr std::size_t kValuesMax = 1'000;  // of one condition
constexpr std::size_t kNamesMax = 16;      // headers, parameters or entries that one condition may name
constexpr std::size_t kEntriesMax = 16;
constexpr std::size_t kNotMax = 16;
constexpr std::string_view kKeyHash = "sha256:";

// Configs are often kept in repositories, so a config must contain the hash of an API key, never the key.
std::optional<std::string> key_hash(Reader& reader, const Node& node, const std::string& text) {
  if (text == "*") return text;
  const std::string digest = lower(text.starts_with(kKeyHash) ? std::string_view(text).substr(kKeyHash.size()) : "");
  const bool is_digest = digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == digest.npos;
  if (is_digest) return std::string(kKeyHash) + digest;
  reader.wrong(node.at, "`api_key`: a config must not contain plain API keys; write this one as " +
                            std::string(kKeyHash) + hex(sha256(text)));
  return {};
}

std::optional<std::string> address_range(Reader& reader, const Node& node, const std::string& text) {
  const auto range = parse_ip_range(text);
  if (range) return to_string(*range);
  reader.wrong(node, "ip", range.error());
  return {};
}

std::optional<std::string> method_name(Reader& reader, const Node& node, std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  if (std::ranges::all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '-' || c == '_'; })) return text;
  reader.wrong(node.at, "`method`: " + in_quotes(node.text) + " is not a method such as GET or POST");
  return {};
}

std::optional<std::string> host_name(Reader& reader, const Node& node, const std::string& text) {
  std::string host = lower(text);
  while (host.ends_with('.')) host.pop_back();
  const std::size_t bracket = host.rfind(']');  // [::1] is a host too
  if (host.find(':', bracket == host.npos ? 0 : bracket) != host.npos) {
    reader.wrong(node.at, "`host`: " + in_quotes(node.text) +
                              " has a port; remove it, because Weir matches hosts without ports");
    return {};
  }
  if (!host.empty() && host.find_first_of("/ @") == host.npos) return host;
  reader.wrong(node.at, "`host`: " + in_quotes(node.text) + " is not a host such as api.example.com or *.example.com");
  return {};
}

std::optional<std::string> value_of(Reader& reader, const Node& node, AttributeKind kind) {
  auto text = reader.text(node, "a text or a list of texts");
  if (!text) return {};
  switch (kind) {
    case AttributeKind::api_key:
      return key_hash(reader, node, *text);
    case AttributeKind::ip:
      return address_range(reader, node, *text);
    case AttributeKind::method:
      return method_name(reader, node, *std::move(text));
    case AttributeKind::host:
      return host_name(reader, node, *text);
    default:
      return text;
  }
}

void read_values(Reader& reader, const Node& node, Condition condition, Match& out) {
  reader.each(node, kValuesMax, Empty::refused, [&](const Node& one) {
    if (condition.kind == AttributeKind::path) return read_pattern(reader, one, condition.any_of);
    if (auto value = value_of(reader, one, condition.kind)) condition.any_of.push_back(*std::move(value));
  });
  out.all.push_back(std::move(condition));
}

template <AttributeKind kind>
void read_condition(Reader& reader, const Node& node, Match& out) {
  read_values(reader, node, {.kind = kind}, out);
}

// `header: {x-org: acme}`: each member is a separate condition.
template <AttributeKind kind>
void read_named(Reader& reader, const Node& node, Match& out) {
  if (!node.is_map() || node.items.empty() || node.items.size() > 2 * kNamesMax) {
    return reader.wrong_kind(node, "a map of 1 to 16 names, as in {x-org: acme}");
  }
  const std::size_t first = out.all.size();
  for (std::size_t i = 0; i < node.items.size(); i += 2) {
    const Node& key = node.items[i];
    const auto dimension = parse_dimension(std::string(to_string(kind)) + ':' + key.text);
    const auto is_same = [&](const Condition& other) { return other.kind == kind && other.name == dimension->name; };
    if (!dimension) {
      reader.wrong(key.at, dimension.error().message);
    } else if (std::ranges::any_of(out.all, is_same)) {
      reader.wrong(key.at, "the " + std::string(to_string(kind)) + ' ' + in_quotes(dimension->name) +
                               " is named twice; list its values in one place");
    } else {
      read_values(reader, node.items[i + 1], {.kind = kind, .name = dimension->name}, out);
    }
  }
  std::sort(out.all.begin() + static_cast<std::ptrdiff_t>(first), out.all.end(),
            [](const Condition& a, const Condition& b) { return a.name < b.name; });
}

template <AttributeKind kind>
std::string print_condition(const Match& match) {
  for (const Condition& condition : match.all) {
    if (condition.kind == kind) return flow_list(condition.any_of);
  }
  return {};
}

template <AttributeKind kind>
std::string print_named(const Match& match) {
  std::vector<std::string> members;
  for (const Condition& condition : match.all) {
    if (condition.kind == kind) members.push_back(flow_text(condition.name) + ": " + flow_list(condition.any_of));
  }
  return members.empty() ? "" : flow_map(members);
}

// Reads which entries a request must have, whatever their values. A name may appear twice.
void read_entries(Reader& reader, const Node& node, Match& out) {
  reader.each(node, kEntriesMax, Empty::refused, [&](const Node& one) {
    const auto text = reader.text(one, "the name of an entry, or a list of names");
    if (!text) return;
    const auto dimension = parse_dimension("entry:" + *text);
    if (!dimension) return reader.wrong(one.at, dimension.error().message);
    out.entries.push_back(dimension->name);
  });
}

std::string print_entries(const Match& match) { return match.entries.empty() ? "" : flow_list(match.entries); }

void read_not(Reader& reader, const Node& node, Match& out) {
  reader.each(node, kNotMax, Empty::refused, [&](const Node& one) {
    Match inner;
    read_match(reader, one, inner);
    if (inner.otherwise || !inner.none_of.empty() || !inner.entries.empty()) {
      return reader.wrong(one.at, "`not` cannot contain `otherwise`, `entries` or another `not`; move them out of it");
    }
    if (one.is_map() && inner.all.empty()) return reader.wrong(one.at, "`not` is empty; remove it, or add a condition");
    out.none_of.push_back(std::move(inner.all));
  });
}

std::string print_not(const Match& match) {
  std::string out;
  for (const auto& conditions : match.none_of) {
    out.append(out.empty() ? "" : ", ").append(print_match({.all = conditions}));
  }
  return match.none_of.size() > 1 ? '[' + out + ']' : out;
}

void read_otherwise(Reader& reader, const Node& node, Match& out) {
  out.otherwise = reader.boolean(node).value_or(false);
}

std::string print_otherwise(const Match& match) { return match.otherwise ? "true" : ""; }

constexpr std::string_view kValues = R"({"$ref":"#/$defs/values"})";
constexpr std::string_view kNamed = R"({"type":"object","additionalProperties":{"$ref":"#/$defs/values"},)"
                                    R"("minProperties":1,"maxProperties":16})";

using enum AttributeKind;
constexpr Field<Match> kMatchFields[] = {
    {"user",
     kValues,
     {.about = "The user. `*` stands for any characters; `'*'` alone for any user.",
      .type = "value, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "'42'\n[alice, 'svc-*']"},
     read_condition<user>,
     print_condition<user>},
    {"api_key",
     kValues,
     {.about = "The API key as its SHA-256 hash, or `'*'` for any key. Weir refuses a plain key, and the error shows "
               "its hash.",
      .type = "value, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "sha256:a665a45920422f9d417e4867efdc4fb8a04a1f3fff1fa07e998e86f7f7a27ae3"},
     read_condition<api_key>,
     print_condition<api_key>},
    {"ip",
     kValues,
     {.about = "The client's address or range.",
      .type = "address or range, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "[192.0.2.1, '2001:db8::/32']"},
     read_condition<ip>,
     print_condition<ip>},
    {"tenant",
     kValues,
     {.about = "The tenant. `*` stands for any characters.",
      .type = "value, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "acme"},
     read_condition<tenant>,
     print_condition<tenant>},
    {"plan",
     kValues,
     {.about = "The plan. `*` stands for any characters.",
      .type = "value, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "[free, trial]"},
     read_condition<plan>,
     print_condition<plan>},
    {"method",
     kValues,
     {.about = "The method. Case does not matter.",
      .type = "value, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "[PUT, PATCH]"},
     read_condition<method>,
     print_condition<method>},
    {"host",
     kValues,
     {.about = "The host, without a port. `'*.example.com'` stands for all hosts below example.com.",
      .type = "value, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "api.example.com\n'*.example.com'"},
     read_condition<host>,
     print_condition<host>},
    {"path",
     kValues,
     {.about = "`/a/b`: exactly this path. `/a/*`: one more segment. `/a/**`: `/a` and everything below. `'/a/{id}'`: "
               "a named segment.",
      .type = "path pattern, or a list of 1 to 1,000",
      .if_absent = "not checked",
      .examples = "/api/login\n[/api/*, '/shops/{shop}/orders/**']"},
     read_condition<path>,
     print_condition<path>},
    {"header",
     kNamed,
     {.about = "Headers by name. `'*'`: any value. If a header has several values, any of them may match.",
      .type = "map of 1 to 16 names to values",
      .if_absent = "not checked",
      .examples = "{x-org: [acme, initech]}"},
     read_named<header>,
     print_named<header>},
    {"query",
     kNamed,
     {.about = "Query parameters by name, as in `header`.",
      .type = "map of 1 to 16 names to values",
      .if_absent = "not checked",
      .examples = "{version: '2'}"},
     read_named<query>,
     print_named<query>},
    {"entry",
     kNamed,
     {.about = "Entries of an Envoy descriptor by name, as in `header`.",
      .type = "map of 1 to 16 names to values",
      .if_absent = "not checked",
      .examples = "{domain: edge, user: '*'}"},
     read_named<entry>,
     print_named<entry>},
    {"entries",
     R"({"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":16}]})",
     {.about = "The names of all entries of the Envoy descriptor, in their order. The first entry is `domain`.",
      .type = "name, or a list of 1 to 16",
      .if_absent = "not checked",
      .examples = "[domain, user]"},
     read_entries,
     print_entries},
    {"not",
     R"({"anyOf":[{"$ref":"#/$defs/match"},{"type":"array","items":{"$ref":"#/$defs/match"},"minItems":1,)"
     R"("maxItems":16}]})",
     {.about = "Excludes requests that match all of these conditions. A list excludes requests that match any of its "
               "maps.",
      .type = "map of the keys above, or a list of 1 to 16",
      .if_absent = "excludes nothing",
      .examples = "{user: '*'}\n[{path: /api/health}, {ip: 10.0.0.0/8}]"},
     read_not,
     print_not},
    {"otherwise",
     R"({"type":"boolean"})",
     {.about = "`true`: the rule applies only if no enforced rule that names a path applies.",
      .type = "`true` or `false`",
      .default_value = "false",
      .examples = "true"},
     read_otherwise,
     print_otherwise},
};

}  // namespace

std::span<const Field<Match>> match_fields() { return kMatchFields; }

void read_pattern(Reader& reader, const Node& node, std::vector<std::string>& out) {
  const auto text = reader.text(node, "a path such as /api/search, or a list of paths");
  if (!text) return;
  const auto pattern = PathPattern::parse(*text, reader.path_case_matters ? PathCase::kept : PathCase::folded);
  if (pattern) {
    out.push_back(pattern->text());
  } else {
    reader.wrong(node, reader.field(), pattern.error());
  }
}

void read_match(Reader& reader, const Node& node, Match& out) {
  if (node.is_scalar() && node.text == "otherwise") {
    out.otherwise = true;
    return;
  }
  reader.fields(node, match_fields(), "`otherwise`, or a map such as {path: /api/search}", out);
}

std::string print_match(const Match& match) {
  const auto members = print_fields(match_fields(), match);
  if (match.otherwise && members.size() == 1) return "otherwise";
  return members.empty() ? "" : flow_map(members);
}

}  // namespace weir
