// Parses text to domains: first checks the shape that every part must have, then interprets the keys. See
// envoy_config.h.
#include "envoy/envoy_config.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "policy/node.h"
#include "policy/policy_reader.h"

namespace weir::envoy {
namespace {

// Returns the number of leading digits.
std::size_t digits(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, base::is_digit) - text.begin());
}

bool is_signed(std::string_view text) { return text.starts_with('+') || text.starts_with('-'); }

std::string without_underscores(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

// Removes the prefix that names the base of a number, and returns the base.
int take_base(std::string_view& text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  const char mark = static_cast<char>(text[1] | 0x20);
  const int base = mark == 'x' ? 16 : mark == 'b' ? 2 : mark == 'o' ? 8 : 0;
  text.remove_prefix(base == 0 ? 1 : 2);
  return base == 0 ? 8 : base;
}

// 12, 12.5, .5, 12e3, 1.5e-3.
bool is_decimal(std::string_view text) {
  if (is_signed(text)) text.remove_prefix(1);
  const std::size_t whole = digits(text);
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::size_t part = digits(text);
    if (whole + part == 0) return false;
    text.remove_prefix(part);
  } else if (whole == 0) {
    return false;
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (is_signed(text)) text.remove_prefix(1);
  return !text.empty() && digits(text) == text.size();
}

bool is_plain_text(const policy::Node& scalar) { return scalar.is_scalar() && scalar.is_plain && !scalar.is_null; }

template <class Words>
bool holds(const Words& words, std::string_view text) {
  return std::ranges::find(words, text) != words.end();
}

}  // namespace

std::optional<std::int64_t> envoy_whole(const policy::Node& scalar) {
  if (!is_plain_text(scalar)) return {};
  const std::string plain = without_underscores(scalar.text);
  std::string_view text = plain;
  const bool is_negative = text.starts_with('-');
  if (is_signed(text)) text.remove_prefix(1);
  if (text.empty() || !base::is_digit(text[0])) return {};
  const int base = take_base(text);
  std::string number = is_negative ? "-" : "";
  number += text;
  if (text.starts_with('-')) return {};
  return base::to_number<std::int64_t>(number, base);
}

std::optional<bool> envoy_boolean(const policy::Node& scalar) {
  static constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                             "True", "TRUE", "on",  "On",  "ON"};
  static constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                              "False", "FALSE", "off", "Off", "OFF"};
  if (!is_plain_text(scalar)) return {};
  if (holds(kTrue, scalar.text)) return true;
  if (holds(kFalse, scalar.text)) return false;
  return {};
}

bool is_envoy_fraction(const policy::Node& scalar) {
  static constexpr std::array<std::string_view, 6> kSpecial = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
  if (!is_plain_text(scalar) || envoy_whole(scalar)) return false;
  std::string_view unsigned_text = scalar.text;
  if (is_signed(unsigned_text)) unsigned_text.remove_prefix(1);
  return holds(kSpecial, unsigned_text) || is_decimal(without_underscores(scalar.text));
}

namespace {

struct UnitRow {
  std::string_view name;
  std::int64_t seconds;
};
constexpr std::int64_t kDay = 86'400;
constexpr std::array<UnitRow, 7> kUnitRows = {{{"second", 1},
                                               {"minute", 60},
                                               {"hour", 3'600},
                                               {"day", kDay},
                                               {"week", 7 * kDay},
                                               {"month", 30 * kDay},
                                               {"year", 365 * kDay}}};

constexpr std::array<std::string_view, 2> kRootKeys = {"domain", "descriptors"};
constexpr std::array<std::string_view, 10> kDescriptorKeys = {
    "key",         "value",           "rate_limit",      "shadow_mode",     "quota_mode",
    "descriptors", "detailed_metric", "value_to_metric", "share_threshold", "metadata"};
constexpr std::array<std::string_view, 5> kLimitKeys = {"unit", "requests_per_unit", "unlimited", "name", "replaces"};
constexpr std::array<std::string_view, 1> kReplacesKeys = {"name"};

constexpr std::size_t kBadFilesTold = 20;
constexpr std::size_t kWarningsMax = 50;

const std::vector<std::string_view>& all_keys() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> keys(kDescriptorKeys.begin(), kDescriptorKeys.end());
    keys.insert(keys.end(), kLimitKeys.begin(), kLimitKeys.end());
    keys.push_back(kRootKeys[0]);
    return keys;
  }();
  return all;
}

std::optional<EnvoyUnit> unit_named(std::string_view name) {
  const auto small = base::lower(name);
  const auto* row = std::ranges::find(kUnitRows, small, &UnitRow::name);
  if (row == kUnitRows.end()) return {};
  return static_cast<EnvoyUnit>(row - kUnitRows.begin());
}

std::string units() {
  std::string out;
  for (const UnitRow& row : kUnitRows) out.append(out.empty() ? "" : ", ").append(row.name);
  return out;
}

// `<<: *name` adds the keys of another map that are not given here. Envoy's files may use it.
void merge_into(policy::Node& map, const policy::Node& from, std::set<std::string>& given,
                std::vector<policy::TextProblem>& problems) {
  if (from.is_list()) {
    for (const policy::Node& one : from.items) merge_into(map, one, given, problems);
    return;
  }
  if (!from.is_map()) {
    problems.push_back({from.at, "`<<` must be an alias to a map, or a list of such aliases"});
    return;
  }
  for (std::size_t i = 0; i + 1 < from.items.size(); i += 2) {
    if (!given.insert(from.items[i].text).second) continue;
    map.items.push_back(from.items[i]);
    map.items.push_back(from.items[i + 1]);
  }
}

void merge_maps(policy::Node& node, std::vector<policy::TextProblem>& problems) {
  for (policy::Node& item : node.items) merge_maps(item, problems);
  if (!node.is_map()) return;
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
    if (node.items[i].text != "<<" || !node.items[i].is_plain) continue;
    const policy::Node from = std::move(node.items[i + 1]);
    const auto at = node.items.begin() + static_cast<std::ptrdiff_t>(i);
    node.items.erase(at, at + 2);
    std::set<std::string> given;
    for (std::size_t k = 0; k < node.items.size(); k += 2) given.insert(node.items[k].text);
    merge_into(node, from, given, problems);
    return;  // a key appears only once
  }
}

// Reads one file. Records an error and continues.
class FileReader {
 public:
  FileReader(std::vector<policy::TextProblem>& problems, std::vector<policy::TextProblem>& warnings,
             std::size_t& descriptors)
      : problems_(problems), warnings_(warnings), descriptors_(descriptors) {}

  EnvoyDomain read(std::string_view text) {
    EnvoyDomain out;
    policy::Node root = policy::read_yaml(text, problems_);
    if (!problems_.empty()) return out;
    merge_maps(root, problems_);
    if (!root.is_map()) {
      wrong(root.at.line > 0 ? root.at : Position{1, 1}, "the file must be a map with `domain` and `descriptors`");
      return out;
    }
    check_shape(root);
    warn_misplaced(root, kRootKeys, "the file");
    out.at = root.at;
    if (const policy::Node* domain = member(root, "domain")) {
      out.at = domain->at;
      out.name = text_of(*domain, "domain");
    }
    if (out.name.empty()) wrong(out.at, "`domain` is empty; name the domain that Envoy's filter sends");
    read_level(root, out.name + '.', out.descriptors);
    return out;
  }

 private:
  void wrong(Position at, std::string message) { problems_.push_back({at, std::move(message)}); }

  static const policy::Node* member(const policy::Node& map, std::string_view name) {
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
      if (map.items[i].text == name) return map.items[i + 1].is_null ? nullptr : &map.items[i + 1];
    }
    return nullptr;
  }

  // Checks what the reference service requires of every map, wherever it is, before it interprets keys.
  void check_shape(const policy::Node& map) {
    const std::vector<std::string_view>& known = all_keys();
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
      const policy::Node& key = map.items[i];
      if (!holds(known, key.text)) {
        std::string message = "unknown key " + base::in_quotes(key.text);
        const std::string_view meant = base::nearest(key.text, known);
        if (!meant.empty()) message.append(", did you mean `").append(meant).append("`?");
        wrong(key.at, std::move(message));
        continue;
      }
      if (key.text != "metadata") check_value(map.items[i + 1], key.text);
    }
  }

  void check_value(const policy::Node& value, std::string_view key) {
    if (value.is_map()) return check_shape(value);
    for (const policy::Node& item : value.items) {
      if (item.is_map()) {
        check_shape(item);
      } else {
        wrong(item.at, "an item of `" + std::string(key) + "` is not a map; write `- key: ...`");
      }
    }
    if (is_envoy_fraction(value)) {
      wrong(value.at, base::in_quotes(value.text) +
                          " is a number with a fraction, which no value here can be; "
                          "put it in quotes if it is a text");
    }
  }

  template <class Keys>
  void warn_misplaced(const policy::Node& map, const Keys& keys, std::string_view where) {
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
      const std::string& name = map.items[i].text;
      if (holds(keys, name) || !holds(all_keys(), name)) continue;
      warnings_.push_back({map.items[i].at, "`" + name + "` has no effect in " + std::string(where) + "; move it"});
    }
  }

  std::string text_of(const policy::Node& node, std::string_view name) {
    if (!node.is_scalar()) {
      wrong(node.at, "`" + std::string(name) + "` must be a text");
      return {};
    }
    if (node.text.size() > kEnvoyTextBytesMax) {
      wrong(node.at, "`" + std::string(name) + "` has more than " + std::to_string(kEnvoyTextBytesMax) + " bytes");
      return {};
    }
    return node.text;
  }

  std::string text_member(const policy::Node& map, std::string_view name) {
    const policy::Node* node = member(map, name);
    return node == nullptr ? std::string{} : text_of(*node, name);
  }

  bool boolean_member(const policy::Node& map, std::string_view name) {
    const policy::Node* node = member(map, name);
    if (node == nullptr) return false;
    const auto value = envoy_boolean(*node);
    if (!value) wrong(node->at, "`" + std::string(name) + "` must be true or false, without quotes");
    return value.value_or(false);
  }

  template <class Read>
  void read_list(const policy::Node& map, std::string_view name, Read read) {
    const policy::Node* list = member(map, name);
    if (list == nullptr) return;
    if (!list->is_list()) return wrong(list->at, "`" + std::string(name) + "` must be a list");
    for (const policy::Node& item : list->items) {
      if (item.is_map()) read(item);  // others are reported already
    }
  }

  using Lines = std::map<std::string, std::int32_t>;  // of the composite keys of a level

  void read_level(const policy::Node& map, const std::string& parent, std::vector<EnvoyDescriptor>& level) {
    Lines lines;
    read_list(map, "descriptors", [&](const policy::Node& node) { add_descriptor(node, parent, lines, level); });
  }

  void add_descriptor(const policy::Node& map, const std::string& parent, Lines& lines,
                      std::vector<EnvoyDescriptor>& level) {
    if (++descriptors_ > kEnvoyDescriptorsMax) {
      if (descriptors_ == kEnvoyDescriptorsMax + 1) {
        wrong(map.at, "more than " + std::to_string(kEnvoyDescriptorsMax) + " descriptors in all; use fewer");
      }
      return;
    }
    warn_misplaced(map, kDescriptorKeys, "a descriptor");
    EnvoyDescriptor out{.key = text_member(map, "key"), .value = text_member(map, "value"), .at = map.at};
    if (out.key.empty()) wrong(map.at, "a descriptor without a `key`; name the entry that it matches");
    const std::string name = parent + out.composite();
    const auto [other, is_new] = lines.try_emplace(out.composite(), map.at.line);
    if (!is_new && !out.key.empty()) {
      wrong(map.at, "the composite key " + base::in_quotes(name, 200) + " is given twice, first on line " +
                        std::to_string(other->second) + "; give it once");
    }
    out.shadow_mode = boolean_member(map, "shadow_mode");
    out.quota_mode = boolean_member(map, "quota_mode");
    out.detailed_metric = boolean_member(map, "detailed_metric");
    out.value_to_metric = boolean_member(map, "value_to_metric");
    out.share_threshold = boolean_member(map, "share_threshold");
    if (out.share_threshold && !out.is_wildcard()) {
      wrong(map.at, "`share_threshold` is for wildcards, and " + base::in_quotes(out.composite(), 200) + " has no *");
    }
    if (const policy::Node* metadata = member(map, "metadata")) {
      out.has_metadata = true;
      if (!metadata->is_map()) wrong(metadata->at, "`metadata` must be a map");
    }
    if (const policy::Node* limit = member(map, "rate_limit")) out.limit = read_limit(*limit);
    read_level(map, name + '.', out.descriptors);
    level.push_back(std::move(out));
  }

  std::optional<EnvoyLimit> read_limit(const policy::Node& map) {
    if (!map.is_map()) {
      wrong(map.at, "`rate_limit` must be a map, as {unit: minute, requests_per_unit: 10}");
      return {};
    }
    warn_misplaced(map, kLimitKeys, "a rate_limit");
    EnvoyLimit out{.unlimited = boolean_member(map, "unlimited"), .name = text_member(map, "name"), .at = map.at};
    const std::string unit_text = text_member(map, "unit");
    const auto unit = unit_named(unit_text);
    const policy::Node* unit_node = member(map, "unit");
    const Position unit_at = unit_node == nullptr ? map.at : unit_node->at;
    if (out.unlimited && unit) wrong(unit_at, "a limit is `unlimited` or has a `unit`; remove one of them");
    if (!out.unlimited && !unit)
      wrong(unit_at, "unknown unit " + base::in_quotes(unit_text) + "; known are " + units());
    out.unit = unit.value_or(EnvoyUnit::second);
    if (const policy::Node* requests = member(map, "requests_per_unit")) {
      const auto number = envoy_whole(*requests);
      if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max()) {
        wrong(requests->at, "`requests_per_unit` must be a whole number from 0 to 4294967295, without quotes");
      } else {
        out.requests_per_unit = static_cast<std::uint32_t>(*number);
      }
    }
    read_list(map, "replaces", [&](const policy::Node& node) {
      warn_misplaced(node, kReplacesKeys, "replaces");
      std::string replaced = text_member(node, "name");
      if (replaced.empty()) wrong(node.at, "`replaces` names no limit; write - name: LIMIT");
      if (!replaced.empty() && replaced == out.name) wrong(node.at, "a limit cannot replace itself");
      out.replaces.push_back(std::move(replaced));
    });
    return out;
  }

  std::vector<policy::TextProblem>& problems_;
  std::vector<policy::TextProblem>& warnings_;
  std::size_t& descriptors_;  // over all files
};

Result<EnvoyConfig> parse_all(std::span<const EnvoyFile> files) {
  if (files.empty()) return fail(ErrorCode::invalid_argument, "there are no Envoy config files; give at least one");
  if (files.size() > kEnvoyFilesMax) {
    return fail(ErrorCode::out_of_range,
                std::to_string(files.size()) + " files; at most " + std::to_string(kEnvoyFilesMax) + " are read");
  }
  EnvoyConfig out;
  std::string errors;
  std::size_t descriptors = 0, bad = 0;
  std::map<std::string, std::string> files_of;  // by domain
  for (const EnvoyFile& file : files) {
    std::vector<policy::TextProblem> problems, warnings;
    EnvoyDomain domain = FileReader(problems, warnings, descriptors).read(file.text);
    domain.file = file.name;
    if (!domain.name.empty()) {
      const auto [other, is_new] = files_of.try_emplace(domain.name, file.name);
      if (!is_new) {
        problems.push_back({domain.at, "the domain " + base::in_quotes(domain.name) + " is in " + other->second +
                                           ", too; put all of it in one file"});
      }
    }
    if (!problems.empty() && ++bad <= kBadFilesTold) {
      errors.append(errors.empty() ? "" : "\n").append(policy::problem_lines(file.name, std::move(problems)));
    }
    for (const policy::TextProblem& warning : warnings) {
      if (out.warnings.size() < kWarningsMax) out.warnings.push_back(policy::problem_lines(file.name, {warning}));
    }
    out.domains.push_back(std::move(domain));
  }
  if (bad > kBadFilesTold) errors += "\nand " + base::counted(bad - kBadFilesTold, "more file") + " with errors";
  if (!errors.empty()) return fail(ErrorCode::invalid_argument, std::move(errors));
  return out;
}

}  // namespace

std::string_view to_string(EnvoyUnit unit) { return kUnitRows[static_cast<std::size_t>(unit)].name; }
std::int64_t seconds_of(EnvoyUnit unit) { return kUnitRows[static_cast<std::size_t>(unit)].seconds; }

Result<EnvoyConfig> parse_envoy(std::span<const EnvoyFile> files) noexcept {
  try {
    return parse_all(files);
  } catch (const std::exception&) {
    return fail(ErrorCode::exhausted, "out of memory");
  }
}

}  // namespace weir::envoy
