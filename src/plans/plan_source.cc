// Chooses the kind of database by the address, and what both kinds need. See plan_source.h.
#include "plans/plan_source.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/nearest.h"

namespace weir::plans {
namespace {

constexpr std::array<std::string_view, 3> kSchemes = {"sqlite", "postgresql", "postgres"};

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n;";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

Result<void> check_query(std::string_view query) {
  if (query.empty()) return {};
  const std::string_view text = without_blanks(query);
  const std::string word = base::lower(text.substr(0, text.find_first_of(" \t\r\n(*")));
  if (word != "select" && word != "with") {
    return fail(ErrorCode::invalid_argument,
                "the query begins with " + base::in_quotes(text.substr(0, word.size())) +
                    "; it must be one SELECT, such as SELECT plan FROM users WHERE id = $1");
  }
  if (text.find("$1") == text.npos) {
    return fail(ErrorCode::invalid_argument,
                "the query does not use $1, the subject's value; write SELECT plan FROM users WHERE id = $1");
  }
  return {};
}

}  // namespace

SubjectParts parts_of_subject(std::string_view subject) {
  const std::size_t colon = subject.find(':');
  if (colon == subject.npos) return {"", subject};
  SubjectParts parts{subject.substr(0, colon), subject.substr(colon + 1)};
  constexpr std::string_view kHash = "sha256:";
  if (parts.kind == "api_key" && parts.value.starts_with(kHash)) parts.value.remove_prefix(kHash.size());
  return parts;
}

std::vector<PlanRow> merged_rows(std::vector<PlanRow> plans, std::vector<PlanRow> overrides, std::size_t most) {
  if (overrides.empty()) return plans;
  std::vector<PlanRow> rows;
  auto plan = plans.begin();
  auto instead = overrides.begin();
  while (rows.size() < most && (plan != plans.end() || instead != overrides.end())) {
    if (instead == overrides.end() || (plan != plans.end() && plan->subject < instead->subject)) {
      rows.push_back(std::move(*plan++));
    } else if (plan == plans.end() || instead->subject < plan->subject) {
      rows.push_back(std::move(*instead++));
    } else {
      PlanRow& row = rows.emplace_back(std::move(*plan++));
      row.has_override = true;
      row.limits = std::move(instead->limits);
      row.until = std::move(instead->until);
      if (row.error.empty()) row.error = std::move(instead->error);
      ++instead;
    }
  }
  return rows;
}

Result<std::unique_ptr<PlanSource>> make_plan_source(const PlanSourceOptions& options) {
  if (Result<void> right = check_query(options.query); !right) return fail(right.error());
  const std::string_view url = options.url;
  const std::size_t colon = url.find(':');
  const std::string scheme = base::lower(url.substr(0, colon));
  if (colon != url.npos && scheme == "sqlite") {
    std::string_view file = url.substr(colon + 1);
    if (file.starts_with("//")) file.remove_prefix(2);  // sqlite:///var/lib/plans.db, as other programs write it
    if (!file.empty() && file != ":memory:") return make_sqlite_source(std::string(file), options);
    return fail(ErrorCode::invalid_argument, base::in_quotes(url) + " names no file; write sqlite:plans.db");
  }
  if (colon != url.npos && (scheme == "postgresql" || scheme == "postgres")) return make_postgres_source(options);
  // Show only the scheme of the address: the rest may contain a password.
  const std::string_view meant = colon == url.npos ? std::string_view{} : base::nearest(scheme, kSchemes);
  std::string message = colon == url.npos ? "the URL of the plan database has no scheme"
                                          : "unknown plan database " + base::in_quotes(scheme);
  if (!meant.empty()) message += "; did you mean '" + std::string(meant) + "'?";
  message += " There are sqlite:FILE and postgresql://USER@HOST/DATABASE";
  return fail(ErrorCode::invalid_argument, std::move(message));
}

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

}  // namespace weir::plans
