// The JSON Schema of a config, built from the same rows as the parser. See fields.h.
//
// It covers what a schema can express: names, types, bounds. Whether a quota or a pattern is valid, only the parser
// checks.
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

template <class T>
std::string object_schema(std::span<const Field<T>> rows, std::string_view required) {
  std::string out = R"({"type":"object","additionalProperties":false,)" + std::string(required) + R"("properties":{)";
  bool is_first = true;
  for (const Field<T>& row : rows) {
    out.append(is_first ? "\n" : ",\n").append("      ").append(json_text(row.name)).append(":");
    std::string value(row.schema);
    value.insert(1, R"("description":)" + json_text(row.about) + ",");
    out.append(value);
    is_first = false;
  }
  return out + "}}";
}

template <class T>
void add_keys(PolicyKey::Place place, std::span<const Field<T>> rows, std::vector<PolicyKey>& out) {
  for (const Field<T>& row : rows) out.push_back({place, row.name, row.about});
}

}  // namespace

std::vector<PolicyKey> policy_keys() {
  std::vector<PolicyKey> out;
  add_keys(PolicyKey::Place::config, policy_fields(), out);
  add_keys(PolicyKey::Place::rule, rule_fields(), out);
  add_keys(PolicyKey::Place::match, match_fields(), out);
  add_keys(PolicyKey::Place::answers, answer_fields(), out);
  add_keys(PolicyKey::Place::plans, plan_fields(), out);
  return out;
}

std::string policy_schema() {
  std::string out = R"({"$schema":"https://json-schema.org/draft/2020-12/schema",
  "title":"Weir policy",
  "description":"Who may do how much of what",
  "allOf":[)" + object_schema(policy_fields(), R"("anyOf":[{"required":["rules"]},{"required":["import"]}],)") +
                    R"(],
  "$defs":{
    "values":{"anyOf":[{"$ref":"#/$defs/value"},
      {"type":"array","items":{"$ref":"#/$defs/value"},"minItems":1,"maxItems":1000}]},
    "value":{"type":["string","integer","number","boolean"]},
    "patterns":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
    "per":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":8}]},
    "quota":{"type":"string","minLength":1},
    "header_form":{"enum":["x-ratelimit","draft-03","draft-06","draft-07","draft-11","retry-after"]},
    "answers":)" + object_schema(answer_fields(), "") +
                    R"(,
    "plans":)" + object_schema(plan_fields(), R"("required":["tiers","default"],)") +
                    R"(,
    "match":)" + object_schema(match_fields(), R"("minProperties":1,)") +
                    R"(,
    "rule":)" +
                    object_schema(rule_fields(),
                                  R"("required":["name"],"oneOf":[{"required":["limit"]},{"required":["limits"]}],)") +
                    "}}\n";
  return out;
}

}  // namespace weir
