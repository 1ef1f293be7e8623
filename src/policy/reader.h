// Reads a tree of nodes by tables of fields. Each config key is one row.
//
// The reader records an error and continues, so all errors are reported at once. A row says how its value is read and
// how it is written. Defaults are not written. Each reader belongs to one thread. Tested by policy_reader_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "policy/node.h"
#include "weir/limit.h"

namespace weir::policy {

inline constexpr std::size_t kValueBytesMax = 1'024;  // of an attribute in a config

class Reader;

template <class T>
struct Field {
  std::string_view name;
  void (*read)(Reader&, const Node&, T&);
  std::optional<Node> (*write)(const T&);  // nothing if the value is the default
};

// Whether a list may be empty.
enum class Empty : std::uint8_t { refused, allowed };

class Reader {
 public:
  // Compiles a quota to a limit. The caller supplies it, because it may have to read a time zone file.
  using Compile = std::function<Result<Limit>(const Quota&)>;

  Reader(std::vector<TextProblem>& problems, Compile compile) : problems_(problems), compile_(std::move(compile)) {}

  bool path_case_matters = false;  // set before any pattern is read

  void wrong(Position at, std::string message) { problems_.push_back({at, std::move(message)}); }
  // Records the error of a text within a scalar. The column of `error` counts from the scalar's first character.
  void wrong(const Node& scalar, std::string_view what, const Error& error);
  // Records an error such as: `limit` must be a text such as ..., found a list.
  void wrong_kind(const Node& node, std::string_view wanted);

  // Reads all members of a map, each by its row.
  template <class T>
  void fields(const Node& map, std::span<const Field<T>> rows, std::string_view wanted, T& out) {
    if (!map.is_map()) return wrong_kind(map, wanted);
    refuse_unknown(
        map, [&](std::string_view name) { return find(rows, name) != nullptr; },
        [&](std::string_view name) { return nearest_of(rows, name); });
    for (const Field<T>& row : rows) {
      const Node* value = member(map, row.name);
      if (value == nullptr) continue;
      const std::string_view outer = std::exchange(field_, row.name);
      row.read(*this, *value, out);
      field_ = outer;
    }
  }
  std::string_view field() const { return field_; }

  std::optional<std::string> text(const Node& node, std::string_view wanted);
  std::optional<bool> boolean(const Node& node);
  // `wanted` replaces the bounds in the error.
  std::optional<std::int64_t> whole(const Node& node, std::int64_t min, std::int64_t max, std::string_view wanted = {});
  // A duration, or 0s.
  void span(const Node& node, std::string_view wanted, Micros least, Micros most, Micros& out);
  // Calls `read` for each element of a list, or once for a single value.
  void each(const Node& node, std::size_t most, Empty empty, const std::function<void(const Node&)>& read);
  std::optional<Quota> quota(const Node& node, std::optional<Algorithm> algorithm);

  static const Node* member(const Node& map, std::string_view name);

 private:
  template <class T>
  static const Field<T>* find(std::span<const Field<T>> rows, std::string_view name) {
    for (const Field<T>& row : rows) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }
  template <class T>
  static std::string_view nearest_of(std::span<const Field<T>> rows, std::string_view name) {
    std::vector<std::string_view> names;
    for (const Field<T>& row : rows) names.push_back(row.name);
    return base::nearest(name, names);
  }
  void refuse_unknown(const Node& map, const std::function<bool(std::string_view)>& is_known,
                      const std::function<std::string_view(std::string_view)>& nearest_name);

  std::vector<TextProblem>& problems_;
  const Compile compile_;
  std::map<std::string, Quota> sound_;  // quotas that compiled, by algorithm and text: most appear many times
  std::string_view field_ = "the config";
};

// Returns a map of all rows whose values are not the default.
template <class T>
Node write_fields(std::span<const Field<T>> rows, const T& value) {
  Node out{.kind = Node::Kind::map};
  for (const Field<T>& row : rows) {
    if (auto written = row.write(value)) {
      out.items.push_back({.text = std::string(row.name)});
      out.items.push_back(*std::move(written));
    }
  }
  return out;
}

}  // namespace weir::policy
