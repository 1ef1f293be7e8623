// The JSON Schema of a config, and the reference page of its keys, built from the same rows as the parser. See
// fields.h.
//
// The schema covers what a schema can express: names, types, bounds. Whether a limit or a pattern is valid, only the
// parser checks.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "policy/fields.h"

namespace weir {
namespace {

// Quotes a text from the tables. Those contain nothing else that JSON must escape.
std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string json_value(const policy::Node& node) {
  if (node.is_scalar()) {
    const bool is_number = !node.text.empty() && node.text.find_first_not_of("0123456789") == std::string::npos;
    const bool is_word = node.is_plain && (node.text == "true" || node.text == "false" || is_number);
    return is_word ? node.text : json_text(node.text);
  }
  std::string out(1, node.is_map() ? '{' : '[');
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const bool is_value = node.is_map() && i % 2 == 1;
    if (i > 0) out += is_value ? ':' : ',';
    out += node.is_map() && !is_value ? json_text(node.items[i].text) : json_value(node.items[i]);
  }
  return out + (node.is_map() ? '}' : ']');
}

// Converts a YAML value of the tables to JSON.
std::string json_of_yaml(std::string_view value) {
  std::vector<policy::TextProblem> problems;
  return json_value(policy::read_yaml(value, problems));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Returns the members that every row adds to the schema of its value.
std::string annotations(const policy::KeyText& text) {
  std::string out = R"("description":)" + json_text(text.about) + ',';
  if (!text.default_value.empty()) out += R"("default":)" + json_of_yaml(text.default_value) + ',';
  std::string examples;
  for (const std::string_view one : lines_of(text.examples)) {
    examples.append(examples.empty() ? "" : ",").append(json_of_yaml(one));
  }
  return out + R"("examples":[)" + examples + "],";
}

template <class T>
std::string object_schema(std::span<const policy::Field<T>> rows, std::string_view required) {
  std::string out = R"({"type":"object","additionalProperties":false,)" + std::string(required) + R"("properties":{)";
  bool is_first = true;
  for (const policy::Field<T>& row : rows) {
    out.append(is_first ? "\n" : ",\n").append("      ").append(json_text(row.name)).append(":");
    std::string value(row.schema);
    value.insert(1, annotations(row.text));
    out.append(value);
    is_first = false;
  }
  return out + "}}";
}

template <class T>
void add_keys(PolicyKey::Place place, std::string_view parent, std::span<const policy::Field<T>> rows,
              std::vector<PolicyKey>& out) {
  for (const policy::Field<T>& row : rows) {
    std::string name(parent);
    name.append(parent.empty() ? "" : ".").append(row.name);
    const policy::KeyText& text = row.text;
    out.push_back({place, name, text.about, text.type, text.default_value, text.if_absent, text.examples});
    if (name == "cost") add_keys(place, name, policy::cost_fields(), out);
    if (name == "skip") add_keys(place, name, policy::skip_fields(), out);
    if (name == "import") add_keys(place, name, policy::import_fields(), out);
  }
}

// A section of the reference page.
struct ReferenceSection {
  PolicyKey::Place place;
  std::string_view title, about;
};
constexpr ReferenceSection kReferenceSections[] = {
    {PolicyKey::Place::config, "The file",
     "The keys of the file itself. Guides: [paths](configuration.md#paths), "
     "[client identity](configuration.md#client-identity-and-trusted-proxies), "
     "[reload](configuration.md#reload-and-change-limits), "
     "[shared limits](configuration.md#share-limits-between-servers), "
     "[Envoy's files](configuration.md#import-envoys-files)."},
    {PolicyKey::Place::rule, "Rules",
     "The keys of each rule in `rules`. Guides: [rules](configuration.md#rules), "
     "[the attributes of `per`](configuration.md#per-what-is-counted-separately), "
     "[how to write a limit, and the algorithms](algorithms.md), "
     "[bans and allow-lists](configuration.md#bans-and-allow-lists)."},
    {PolicyKey::Place::match, "match",
     "The keys of `match` in a rule. A rule applies if all of its keys match. If a key has a list, one value must "
     "match. Guide: [match](configuration.md#match-which-requests)."},
    {PolicyKey::Place::answers, "answers",
     "The keys of `answers`. Guide: [response headers and status](configuration.md#response-headers-and-status)."},
    {PolicyKey::Place::plans, "plans", "The keys of `plans`. Guide: [plans](configuration.md#plans)."},
};

std::string code(std::string_view text) { return '`' + std::string(text) + '`'; }

std::string reference_row(const PolicyKey& key) {
  const std::string name = key.name.substr(key.name.find('.') + 1);
  std::string examples;
  for (const std::string_view one : lines_of(key.examples)) {
    examples.append(examples.empty() ? "" : "<br>").append(code(name + ": " + std::string(one)));
  }
  const std::string usual = key.default_value.empty() ? std::string(key.if_absent) : code(key.default_value);
  std::string out = "| " + code(key.name);
  for (const std::string_view cell : {key.type, std::string_view(usual), key.about, std::string_view(examples)}) {
    out.append(" | ").append(cell);
  }
  return out + " |\n";
}

}  // namespace

std::vector<PolicyKey> policy_keys() {
  std::vector<PolicyKey> out;
  add_keys(PolicyKey::Place::config, "", policy::policy_fields(), out);
  add_keys(PolicyKey::Place::rule, "", policy::rule_fields(), out);
  add_keys(PolicyKey::Place::match, "", policy::match_fields(), out);
  add_keys(PolicyKey::Place::answers, "", policy::answer_fields(), out);
  add_keys(PolicyKey::Place::plans, "", policy::plan_fields(), out);
  return out;
}

std::string policy_reference() {
  std::string out = R"(# Configuration reference

Every key of a config, with its type, default, meaning and examples. To learn how to write a config, read
[configuration.md](configuration.md). For the same in your editor, use `weir schema`.

This page is generated: `weir schema --markdown > docs/configuration-reference.md`. A test compares it with the
program, and reads every example and default.

- [The file](#the-file)
- [Rules](#rules)
- [match](#match)
- [answers](#answers)
- [plans](#plans)

A key of a map has the name of the map before it: `cost.header` is `cost: {header: x-cost}`. A duration is a number
with a unit: `5ms`, `2s`, `1h`. A value that contains `{`, `[` or `: `, or begins with `*`, must be in quotes.
)";
  const std::vector<PolicyKey> keys = policy_keys();
  for (const ReferenceSection& section : kReferenceSections) {
    out.append("\n## ").append(section.title).append("\n\n").append(section.about);
    out += "\n\n| key | type | default | meaning | examples |\n|---|---|---|---|---|\n";
    for (const PolicyKey& key : keys) {
      if (key.place == section.place) out += reference_row(key);
    }
  }
  return out;
}

std::string policy_schema() {
  std::string out = R"({"$schema":"https://json-schema.org/draft/2020-12/schema",
  "title":"Weir config",
  "description":"The rules of a Weir server, and how it reads requests and answers them.",
  "allOf":[)" + object_schema(policy::policy_fields(), R"("anyOf":[{"required":["rules"]},{"required":["import"]}],)") +
                    R"(],
  "$defs":{
    "values":{"anyOf":[{"$ref":"#/$defs/value"},
      {"type":"array","items":{"$ref":"#/$defs/value"},"minItems":1,"maxItems":1000}]},
    "value":{"type":["string","integer","number","boolean"]},
    "patterns":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
    "per":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":8}]},
    "quota":{"type":"string","minLength":1},
    "header_form":{"enum":["x-ratelimit","draft-03","draft-06","draft-07","draft-11","retry-after"]},
    "algorithm":{"enum":["fixed_window","sliding_log","sliding_window","token_bucket","leaky_bucket","leaky_meter"]},
    "skip":)" + object_schema(policy::skip_fields(), "") +
                    R"(,
    "import":)" + object_schema(policy::import_fields(), R"("required":["envoy"],)") +
                    R"(,
    "cost":)" + object_schema(policy::cost_fields(), R"("required":["header"],)") +
                    R"(,
    "answers":)" + object_schema(policy::answer_fields(), "") +
                    R"(,
    "plans":)" + object_schema(policy::plan_fields(), R"("required":["tiers","default"],)") +
                    R"(,
    "match":)" + object_schema(policy::match_fields(), R"("minProperties":1,)") +
                    R"(,
    "rule":)" +
                    object_schema(policy::rule_fields(),
                                  R"("required":["name"],"oneOf":[{"required":["limit"]},{"required":["limits"]}],)") +
                    "}}\n";
  return out;
}

}  // namespace weir
