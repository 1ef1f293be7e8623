// Prints the report as a table and as JSON. See report.h. Numbers have four significant digits, because the measurement
// is no more precise.
#include "kit/report.h"

#include <cmath>

namespace weir::bench {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(value) < 10 ? "%.2f" : "%.1f", value);
  return text;
}

std::string bar_text(const Bar& bar) { return (bar.side == Bar::Side::at_most ? "<= " : ">= ") + number(bar.value); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

std::string object(const Row& row) {
  const auto ratio = row.ratio();
  const auto ok = row.ok();
  std::string text = "{\"name\": " + quoted(row.name) + ", \"value\": " + number(row.value);
  text += ", \"unit\": " + quoted(row.unit);
  text += ", \"against\": " + (row.against ? quoted(row.against->name) : "null");
  text += ", \"ratio\": " + (ratio ? number(*ratio) : "null");
  text += ", \"bar\": " + (row.bar ? quoted(bar_text(*row.bar)) : "null");
  return text + ", \"ok\": " + (ok ? *ok ? "true" : "false" : "null") + "}";
}

void print_row(std::FILE* to, const Row& row) {
  std::string name = row.name;
  if (row.against) name += ", compared with " + row.against->name;
  std::fprintf(to, "  %-86s %8s %-5s", name.c_str(), figure(row.value).c_str(), row.unit.c_str());
  if (row.against)
    std::fprintf(to, " %6sx of %8s", figure(row.ratio().value_or(0)).c_str(), figure(row.against->value).c_str());
  if (row.bar) {
    if (!row.against) std::fprintf(to, "%20s", "");
    std::fprintf(to, "  bar %-7s %s", bar_text(*row.bar).c_str(), *row.ok() ? "ok" : "missed");
  }
  std::fputc('\n', to);
}

}  // namespace

std::optional<double> Row::ratio() const {
  if (!against || against->value == 0) return std::nullopt;
  return value / against->value;
}

std::optional<bool> Row::ok() const {
  if (!bar) return std::nullopt;
  return bar->accepts(against ? ratio().value_or(NAN) : value);
}

void Report::begin(std::string title) { sections_.push_back({std::move(title), {}}); }

void Report::add(Row row) {
  if (sections_.empty()) begin("");
  sections_.back().rows.push_back(std::move(row));
}

void Report::print(std::FILE* to) const {
  for (const Section& section : sections_) {
    std::fprintf(to, "\n%s\n", section.title.c_str());
    for (const Row& row : section.rows) print_row(to, row);
  }
}

std::string Report::json() const {
  std::string text;
  for (const Section& section : sections_) {
    for (const Row& row : section.rows) text += (text.empty() ? "  " : ",\n  ") + object(row);
  }
  return "[\n" + text + "\n]\n";
}

bool Report::write_json(const std::string& path) const {
  const std::string text = json();
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) == 0 && written) return true;
  std::fprintf(stderr, "cannot write %s; check that its folder exists and is writable\n", path.c_str());
  return false;
}

}  // namespace weir::bench
