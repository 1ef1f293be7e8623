// Converts a row to its text and back. Each field is its length, a colon and its bytes. See row_text.h.
#include "plans/row_text.h"

#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

namespace weir {
namespace {

constexpr char kPlan = 'p', kOverride = 'o', kError = 'e', kNothing = '-';

void append(std::string& text, const std::optional<std::string>& field) {
  if (!field) {
    text += kNothing;
    return;
  }
  text += std::to_string(field->size()) + ':' + *field;
}

bool take(std::string_view& text, char mark) {
  if (text.empty() || text.front() != mark) return false;
  text.remove_prefix(1);
  return true;
}

// Returns false if there is no field.
bool take_field(std::string_view& text, std::optional<std::string>& field) {
  field.reset();
  if (take(text, kNothing)) return true;
  std::size_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc{} || end == text.data() + text.size() || *end != ':') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  if (text.size() < size) return false;
  field = std::string(text.substr(0, size));
  text.remove_prefix(size);
  return true;
}

}  // namespace

std::string row_text(const PlanRow& row) {
  std::string text;
  if (row.has_plan) {
    text += kPlan;
    append(text, row.plan);
  }
  if (row.has_override) {
    text += kOverride;
    append(text, row.limits);
    append(text, row.until);
  }
  if (!row.error.empty()) {
    text += kError;
    append(text, row.error);
  }
  return text;
}

std::optional<PlanRow> row_of_text(std::string_view subject, std::string_view text) {
  PlanRow row{.subject = std::string(subject)};
  if (take(text, kPlan)) {
    row.has_plan = true;
    if (!take_field(text, row.plan)) return std::nullopt;
  }
  if (take(text, kOverride)) {
    row.has_override = true;
    if (!take_field(text, row.limits) || !take_field(text, row.until)) return std::nullopt;
  }
  if (take(text, kError)) {
    std::optional<std::string> error;
    if (!take_field(text, error) || !error) return std::nullopt;
    row.error = *std::move(error);
  }
  if (!text.empty()) return std::nullopt;
  return row;
}

}  // namespace weir
