// Reads, checks and prints the `match` of a rule. See fields.h.
//
// Every value is converted to its canonical form here, once, so matching only compares and never interprets.
#include <algorithm>

#include "base/ip_address.h"
#include "base/nearest.h"
#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/path_pattern.h"

namespace weir::policy {
namespace {

constexpr std::size_t kValuesMax = 1'000;  // of one condition
constexpr std::size_t kNamesMax = 16;      // headers, parameters or entries that one condition may name
constexpr std::size_t kEntriesMax = 16;
constexpr std::size_t kNotMax = 16;
constexpr std::string_view kKeyHash = "sha256:";

// Configs are often kept in repositories, so a config must contain the hash of an API key, never the key.
std::optional<std::string> key_hash(Reader& reader, const Node& node, const std::string& text) {
  if (text == "*") return text;
  const std::string digest =
      base::lower(text.starts_with(kKeyHash) ? std::string_view(text).substr(kKeyHash.size()) : "");
  const bool is_digest = digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == digest.npos;
  if (is_digest) return std::string(kKeyHash) + digest;
  reader.wrong(node.at, "`api_key`: a config must not contain plain API keys; write this one as " +
                            std::string(kKeyHash) + base::hex(base::sha256(text)));
  return {};
}

std::optional<std::string> address_range(Reader& reader, const Node& node, const std::string& text) {
  const auto range = base::parse_ip_range(text);
  if (range) return base::to_string(*range);
  reader.wrong(node, "ip", range.error());
  return {};
}

std::optional<std::string> method_name(Reader& reader, const Node& node, std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  if (std::ranges::all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || c == '-' || c == '_'; })) return text;
  reader.wrong(node.at, "`method`: " + base::in_quotes(node.text) + " is not a method such as GET or POST");
  return {};
}

std::optional<std::string> host_name(Reader& reader, const Node& node, const std::string& text) {
  std::string host = base::lower(text);
  while (host.ends_with('.')) host.pop_back();
  const std::size_t bracket = host.rfind(']');  // [::1] is a host too
  if (host.find(':', bracket == host.npos ? 0 : bracket) != host.npos) {
    reader.wrong(node.at, "`host`: " + base::in_quotes(node.text) +
                              " has a port; remove it, because Weir matches hosts without ports");
    return {};
  }
  if (!host.empty() && host.find_first_of("/ @") == host.npos) return host;
  reader.wrong(node.at,
               "`host`: " + base::in_quotes(node.text) + " is not a host such as api.example.com or *.example.com");
  return {};
}

std::optional<std::string> value_of(Reader& reader, const Node& node, weir::AttributeKind kind) {
  auto text = reader.text(node, "a text or a list of texts");
  if (!text) return {};
  switch (kind) {
    case weir::AttributeKind::api_key:
      return key_hash(reader, node, *text);
    case weir::AttributeKind::ip:
      return address_range(reader, node, *text);
    case weir::AttributeKind::method:
      return method_name(reader, node, *std::move(text));
    case weir::AttributeKind::host:
      return host_name(reader, node, *text);
    default:
      return text;
  }
}

void read_values(Reader& reader, const Node& node, Condition condition, Match& out) {
  reader.each(node, kValuesMax, Empty::refused, [&](const Node& one) {
    if (condition.kind == weir::AttributeKind::path) return read_pattern(reader, one, condition.any_of);
    if (auto value = value_of(reader, one, condition.kind)) condition.any_of.push_back(*std::move(value));
  });
  out.all.push_back(std::move(condition));
}

template <weir::AttributeKind kind>
void read_condition(Reader& reader, const Node& node, Match& out) {
  read_values(reader, node, {.kind = kind}, out);
}

// `header: {x-org: acme}`: each member is a separate condition.
template <weir::AttributeKind kind>
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
      reader.wrong(key.at, "the " + std::string(to_string(kind)) + ' ' + base::in_quotes(dimension->name) +
                               " is named twice; list its values in one place");
    } else {
      read_values(reader, node.items[i + 1], {.kind = kind, .name = dimension->name}, out);
    }
  }
  std::sort(out.all.begin() + static_cast<std::ptrdiff_t>(first), out.all.end(),
            [](const Condition& a, const Condition& b) { return a.name < b.name; });
}

template <weir::AttributeKind kind>
std::optional<Node> write_condition(const Match& match) {
  const auto condition = std::ranges::find(match.all, kind, &Condition::kind);
  if (condition == match.all.end()) return {};
  return list_node(condition->any_of);
}

template <weir::AttributeKind kind>
std::optional<Node> write_named(const Match& match) {
  Node out{.kind = Node::Kind::map};
  for (const Condition& condition : match.all) {
    if (condition.kind != kind) continue;
    out.items.push_back(text_node(condition.name));
    out.items.push_back(list_node(condition.any_of));
  }
  if (out.items.empty()) return {};
  return out;
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

std::optional<Node> write_not(const Match& match) {
  if (match.none_of.empty()) return {};
  if (match.none_of.size() == 1) return write_match({.all = match.none_of[0]});
  Node out{.kind = Node::Kind::list};
  for (const auto& conditions : match.none_of) {
    out.items.push_back(write_match({.all = conditions}).value_or(Node{.kind = Node::Kind::map}));
  }
  return out;
}

using enum AttributeKind;
constexpr Field<Match> kMatchFields[] = {
    {"user", read_condition<user>, write_condition<user>},
    {"api_key", read_condition<api_key>, write_condition<api_key>},
    {"ip", read_condition<ip>, write_condition<ip>},
    {"tenant", read_condition<tenant>, write_condition<tenant>},
    {"plan", read_condition<plan>, write_condition<plan>},
    {"method", read_condition<method>, write_condition<method>},
    {"host", read_condition<host>, write_condition<host>},
    {"path", read_condition<path>, write_condition<path>},
    {"header", read_named<header>, write_named<header>},
    {"query", read_named<query>, write_named<query>},
    {"entry", read_named<entry>, write_named<entry>},
    {"entries", read_entries, write_member<Match, &Match::entries>},
    {"not", read_not, write_not},
    flag_row<Match, &Match::otherwise>("otherwise"),
};

}  // namespace

std::span<const Field<Match>> match_fields() { return kMatchFields; }

void read_pattern(Reader& reader, const Node& node, std::vector<std::string>& out) {
  const auto text = reader.text(node, "a path such as /api/search, or a list of paths");
  if (!text) return;
  const auto pattern = PathPattern::parse(*text, reader.path_case_matters ? PathCase::kept : PathCase::folded);
  if (!pattern) return reader.wrong(node, reader.field(), pattern.error());
  out.push_back(pattern->text());
}

void read_match(Reader& reader, const Node& node, Match& out) {
  if (node.is_scalar() && node.text == "otherwise") {
    out.otherwise = true;
    return;
  }
  reader.fields(node, match_fields(), "`otherwise`, or a map such as {path: /api/search}", out);
}

std::optional<Node> write_match(const Match& match) {
  Node members = write_fields(match_fields(), match);
  if (members.items.empty()) return {};
  if (match.otherwise && members.items.size() == 2) return text_node("otherwise");
  return members;
}

}  // namespace weir::policy
