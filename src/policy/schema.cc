// The JSON Schema of a config, and the reference page of its keys, made from keys.yaml. See fields.h.
//
// The schema covers what a schema can express: names, types, bounds. Whether a limit or a pattern is valid, only the
// parser checks.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/filled.h"
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

// The keys of a map of a config, as keys.yaml has them: names and values alternate.
const policy::Node& keys_of(std::string_view map) {
  static const policy::Node kAll = [] {
    std::vector<policy::TextProblem> problems;
    policy::Node root = policy::read_yaml(policy::keys_document(), problems);
    WEIR_ASSERT(problems.empty());
    return root;
  }();
  const policy::Node* const keys = policy::Reader::member(kAll, map);
  WEIR_ASSERT(keys != nullptr);
  return *keys;
}

std::string_view text_of(const policy::Node& key, std::string_view what) {
  const policy::Node* const text = policy::Reader::member(key, what);
  return text == nullptr ? std::string_view() : text->text;
}

std::string key_schema(const policy::Node& key) {
  std::string out = R"({"description":)" + json_text(text_of(key, "about")) + ',';
  if (const auto usual = text_of(key, "default"); !usual.empty()) out += R"("default":)" + json_of_yaml(usual) + ',';
  std::string examples;
  for (const std::string_view one : lines_of(text_of(key, "examples"))) {
    examples.append(examples.empty() ? "" : ",").append(json_of_yaml(one));
  }
  return out + R"("examples":[)" + examples + "]," + json_value(*policy::Reader::member(key, "schema")).substr(1);
}

std::string properties_of(std::string_view map) {
  std::string out;
  const std::vector<policy::Node>& keys = keys_of(map).items;
  for (std::size_t i = 0; i < keys.size(); i += 2) {
    out.append(i == 0 ? "\n" : ",\n").append("      ").append(json_text(keys[i].text)).append(":");
    out.append(key_schema(keys[i + 1]));
  }
  return out;
}

void add_keys(PolicyKey::Place place, std::string_view map, std::string_view parent, std::vector<PolicyKey>& out) {
  const std::vector<policy::Node>& keys = keys_of(map).items;
  for (std::size_t i = 0; i < keys.size(); i += 2) {
    const std::string name = std::string(parent) + keys[i].text;
    const policy::Node& key = keys[i + 1];
    out.push_back({place, name, text_of(key, "about"), text_of(key, "type"), text_of(key, "default"),
                   text_of(key, "without"), text_of(key, "examples")});
    if (name == "cost" || name == "skip" || name == "import") add_keys(place, name, name + '.', out);
  }
}

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

std::string rows_of(PolicyKey::Place place) {
  std::string out;
  for (const PolicyKey& key : policy_keys()) {
    if (key.place == place) out += reference_row(key);
  }
  return out;
}

}  // namespace

std::vector<PolicyKey> policy_keys() {
  std::vector<PolicyKey> out;
  add_keys(PolicyKey::Place::config, "config", "", out);
  add_keys(PolicyKey::Place::rule, "rule", "", out);
  add_keys(PolicyKey::Place::match, "match", "", out);
  add_keys(PolicyKey::Place::answers, "answers", "", out);
  add_keys(PolicyKey::Place::plans, "plans", "", out);
  return out;
}

std::string policy_reference() {
  using enum PolicyKey::Place;
  return base::filled(policy::reference_page(), {{"@config@\n", rows_of(config)},
                                                 {"@rule@\n", rows_of(rule)},
                                                 {"@match@\n", rows_of(match)},
                                                 {"@answers@\n", rows_of(answers)},
                                                 {"@plans@\n", rows_of(plans)}});
}

std::string policy_schema() {
  return base::filled(policy::schema_document(), {{"@config@", properties_of("config")},
                                                  {"@skip@", properties_of("skip")},
                                                  {"@import@", properties_of("import")},
                                                  {"@cost@", properties_of("cost")},
                                                  {"@answers@", properties_of("answers")},
                                                  {"@plans@", properties_of("plans")},
                                                  {"@match@", properties_of("match")},
                                                  {"@rule@", properties_of("rule")}});
}

}  // namespace weir
