// What a bench has found: rows with a figure, what it is held against, and the bar that it should pass.
//
// Every bench prints the same table and, for programs, writes the same JSON: an array of objects {name, value, unit,
// against, ratio, bar, ok}. A ratio is always the row's value divided by that of what it is held against; a bar speaks
// of the ratio, or of the value where nothing is held against it. Parts that do not apply are null. Name and against
// together tell a row from the others of its bench. One thread.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::bench {

struct Bar {
  enum class Side { at_most, at_least };
  Side side;
  double value;

  bool holds(double figure) const { return side == Side::at_most ? figure <= value : figure >= value; }
};

constexpr Bar at_most(double value) { return {Bar::Side::at_most, value}; }
constexpr Bar at_least(double value) { return {Bar::Side::at_least, value}; }

// What a row is held against.
struct Rival {
  std::string name;
  double value;  // in the unit of the row
};

struct Row {
  std::string name;
  double value;
  std::string unit;
  std::optional<Rival> against{};
  std::optional<Bar> bar{};

  std::optional<double> ratio() const;
  std::optional<bool> ok() const;  // nothing where there is no bar
};

class Report {
 public:
  // A title above the rows that follow; it is printed only.
  void begin(std::string title);
  void add(Row row);

  void print(std::FILE* to) const;
  std::string json() const;
  // False, with a word on stderr, if the file cannot be written.
  bool write_json(const std::string& path) const;

 private:
  struct Section {
    std::string title;
    std::vector<Row> rows;
  };
  std::vector<Section> sections_;
};

}  // namespace weir::bench
