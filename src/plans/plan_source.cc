// Chooses the kind of database by the address. See plan_source.h.
#include "plans/plan_source.h"

#include <array>
#include <utility>

#include "base/nearest.h"
#include "plans/postgres_source.h"
#include "plans/sqlite_source.h"

namespace weir {
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
  const std::string word = lower(text.substr(0, text.find_first_of(" \t\r\n(*")));
  if (word != "select" && word != "with") {
    return fail(ErrorCode::invalid_argument,
                "the query begins with " + in_quotes(text.substr(0, word.size())) +
                    "; it must be one SELECT, such as SELECT plan FROM users WHERE id = $1");
  }
  if (text.find("$1") == text.npos) {
    return fail(ErrorCode::invalid_argument,
                "the query does not use $1, the subject's value; write SELECT plan FROM users WHERE id = $1");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<PlanSource>> make_plan_source(const PlanSourceOptions& options) {
  if (Result<void> right = check_query(options.query); !right) return fail(right.error());
  const std::string_view url = options.url;
  const std::size_t colon = url.find(':');
  const std::string scheme = lower(url.substr(0, colon));
  if (colon != url.npos && scheme == "sqlite") {
    std::string_view file = url.substr(colon + 1);
    if (file.starts_with("//")) file.remove_prefix(2);  // sqlite:///var/lib/plans.db, as other programs write it
    if (!file.empty() && file != ":memory:") return make_sqlite_source(std::string(file), options);
    return fail(ErrorCode::invalid_argument, in_quotes(url) + " names no file; write sqlite:plans.db");
  }
  if (colon != url.npos && (scheme == "postgresql" || scheme == "postgres")) return make_postgres_source(options);
  // Show only the scheme of the address: the rest may contain a password.
  const std::string_view meant = colon == url.npos ? std::string_view{} : nearest(scheme, kSchemes);
  std::string message =
      colon == url.npos ? "the URL of the plan database has no scheme" : "unknown plan database " + in_quotes(scheme);
  if (!meant.empty()) message += "; did you mean '" + std::string(meant) + "'?";
  message += " There are sqlite:FILE and postgresql://USER@HOST/DATABASE";
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace weir
