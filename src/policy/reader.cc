// Reading code shared by all tables. See reader.h.
#include "policy/reader.h"

#include "base/text.h"
#include "weir/duration.h"
#include "weir/verdict.h"

namespace weir::policy {
namespace {

std::string_view kind_of(const Node& node) {
  if (node.is_list()) return "a list";
  if (node.is_map()) return "a map";
  return node.is_null ? "nothing" : "a text";
}

std::string found(const Node& node) {
  if (!node.is_scalar() && node.items.empty()) return "an empty " + std::string(node.is_list() ? "list" : "map");
  return node.is_scalar() && !node.is_null ? base::in_quotes(node.text) : std::string(kind_of(node));
}

std::string in_backticks(std::string_view name) { return '`' + std::string(name) + '`'; }

}  // namespace

void Reader::wrong(const Node& scalar, std::string_view what, const Error& error) {
  Position at = scalar.at;
  std::string_view message = error.message;
  if (error.column > 0) {
    const std::string lead = "column " + std::to_string(error.column) + ": ";
    if (message.starts_with(lead)) message.remove_prefix(lead.size());
    at.column += error.column - 1 + (scalar.is_plain ? 0 : 1);
  }
  wrong(at, (what.empty() ? "" : in_backticks(what) + ": ") + std::string(message));
}

void Reader::wrong_kind(const Node& node, std::string_view wanted) {
  wrong(node.at, (field_.starts_with("the ") ? std::string(field_) : in_backticks(field_)) + " must be " +
                     std::string(wanted) + ", found " + found(node));
}

const Node* Reader::member(const Node& map, std::string_view name) {
  for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == name) return &map.items[i + 1];
  }
  return nullptr;
}

void Reader::refuse_unknown(const Node& map, const std::function<bool(std::string_view)>& is_known,
                            const std::function<std::string_view(std::string_view)>& nearest_name) {
  for (std::size_t i = 0; i < map.items.size(); i += 2) {
    const Node& key = map.items[i];
    if (is_known(key.text)) continue;
    std::string shown = base::in_quotes(key.text);
    shown.front() = shown.back() = '`';
    std::string message = "unknown key " + shown;
    const std::string_view meant = nearest_name(key.text);
    if (!meant.empty()) message += ", did you mean " + in_backticks(meant) + "?";
    wrong(key.at, std::move(message));
  }
}

std::optional<std::string> Reader::text(const Node& node, std::string_view wanted) {
  if (!node.is_scalar() || node.is_null || node.text.empty()) {
    wrong_kind(node, wanted);
    return {};
  }
  if (node.text.size() > kValueBytesMax) {
    wrong(node.at, in_backticks(field_) + " has " + std::to_string(node.text.size()) + " bytes; at most " +
                       std::to_string(kValueBytesMax) + " are allowed");
    return {};
  }
  return node.text;
}

std::optional<bool> Reader::boolean(const Node& node) {
  if (node.is_scalar() && node.text == "true") return true;
  if (node.is_scalar() && node.text == "false") return false;
  wrong_kind(node, "true or false");
  return {};
}

std::optional<std::int64_t> Reader::whole(const Node& node, std::int64_t min, std::int64_t max,
                                          std::string_view wanted) {
  const auto value = node.is_scalar() ? base::to_number<std::int64_t>(node.text) : std::nullopt;
  if (value && *value >= min && *value <= max) return value;
  const std::string bounds = "a whole number from " + std::to_string(min) + " to " + std::to_string(max);
  wrong_kind(node, wanted.empty() ? bounds : wanted);
  return {};
}

void Reader::span(const Node& node, std::string_view wanted, Micros least, Micros most, Micros& out) {
  const auto written = text(node, wanted);
  if (!written) return;
  const auto span = *written == "0s" || *written == "0" ? Result<Micros>(Micros{0}) : parse_duration(*written);
  if (!span || *span < least || *span > most) return wrong_kind(node, wanted);
  out = *span;
}

void Reader::each(const Node& node, std::size_t most, Empty empty, const std::function<void(const Node&)>& read) {
  if (!node.is_list()) return read(node);
  if (node.items.empty() && empty == Empty::refused) return wrong_kind(node, "one value or a list of at least one");
  if (node.items.size() > most) {
    return wrong(node.at, in_backticks(field_) + " has " + std::to_string(node.items.size()) + " values; at most " +
                              std::to_string(most) + " are allowed");
  }
  for (const Node& item : node.items) read(item);
}

std::optional<Quota> Reader::quota(const Node& node, std::optional<Algorithm> algorithm) {
  if (!node.is_scalar() || node.is_null) {
    wrong_kind(node, "a limit such as 100/minute");
    return {};
  }
  std::string written(algorithm ? weir::to_string(*algorithm) : "");
  written.append("\n").append(node.text);
  if (const auto known = sound_.find(written); known != sound_.end()) return known->second;
  auto quota = parse_quota(node.text, algorithm);
  if (!quota) {
    wrong(node, field_, quota.error());
    return {};
  }
  if (quota->algorithm == Algorithm::concurrency) {
    wrong(node.at,
          in_backticks(field_) + ": a rule cannot limit permits in flight; " + "write a rate such as 100/minute");
    return {};
  }
  if (const auto limit = compile_(*quota); !limit) {
    wrong(node, field_, limit.error());
    return {};
  }
  sound_.emplace(std::move(written), *quota);
  return *std::move(quota);
}

}  // namespace weir::policy
