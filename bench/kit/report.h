// The results of a benchmark: rows with a figure, a rival to compare it with, and a bar that the figure should pass.
//
// Every benchmark prints the same table and, with --json, writes the same JSON: an array of objects {name, value, unit,
// against, ratio, bar, ok}. A ratio is the value of the row divided by that of its rival. A bar applies to the ratio,
// or without a rival to the value. Missing parts are null. The name and the rival together identify a row. One thread.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace weir::bench {

struct Bar {
  enum class Side { at_most, at_least };
  Side side;
  double value;

  bool accepts(double figure) const { return side == Side::at_most ? figure <= value : figure >= value; }
};

constexpr Bar at_most(double value) { return {Bar::Side::at_most, value}; }
constexpr Bar at_least(double value) { return {Bar::Side::at_least, value}; }

// What a row is compared with.
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
  std::optional<bool> ok() const;  // nothing if there is no bar
};

class Report {
 public:
  // Begins a section: a title above the rows that follow. The JSON has no titles.
  void begin(std::string title);
  void add(Row row);

  void print(std::FILE* to) const;
  std::string json() const;
  // Returns false, and prints an error to stderr, if it cannot write the file.
  bool write_json(const std::string& path) const;

 private:
  struct Section {
    std::string title;
    std::vector<Row> rows;
  };
  std::vector<Section> sections_;
};

}  // namespace weir::bench
