// Parses lines and sets CLI11's options. See settings_file.h.
#include "serve/settings_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/command_tree.h"
#include "control/config_file.h"

namespace weir::serve {
namespace {

constexpr std::size_t kErrorsMax = 20;

bool is_comment(std::string_view text) { return text.empty() || text.starts_with('#'); }

// The value of a line: quoted, or unquoted up to a comment.
Result<std::string> parse_value(std::string_view text) {
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) {
    const std::size_t comment = text.find(" #");
    return std::string(base::trimmed(text.substr(0, comment)));
  }
  const std::size_t end = text.find(text.front(), 1);
  if (end == text.npos) return fail(ErrorCode::invalid_argument, "the closing quote is missing");
  if (!is_comment(base::trimmed(text.substr(end + 1)))) {
    return fail(ErrorCode::invalid_argument,
                "unexpected text after the closing quote: " + base::in_quotes(text.substr(end + 1)));
  }
  return std::string(text.substr(1, end - 1));
}

// The names that a line may set.
std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : cli::options_of(command)) {
    for (const std::string& name : option->get_lnames()) {
      if (name != "help" && name != "settings") names.push_back(name);
    }
  }
  return names;
}

}  // namespace

void SettingsFile::add(CLI::App& app) {
  app.add_option("--settings", file_,
                 "File with more options, one per line: http = \"0.0.0.0:8080\"; the command line takes precedence")
      ->type_name("FILE");
}

void SettingsFile::wrong(std::size_t line, const std::string& why) {
  errors_.push_back(file_ + ":" + std::to_string(line) + ": " + why);
}

Result<SettingsFile::Line> SettingsFile::parse(std::string_view text, std::size_t number) const {
  if (text.starts_with('[')) {
    return fail(ErrorCode::invalid_argument, "sections are not supported; every line is `name = value`");
  }
  const std::size_t equals = text.find('=');
  if (equals == text.npos) {
    return fail(ErrorCode::invalid_argument, base::in_quotes(text) + " has no value; write `name = value`");
  }
  auto value = parse_value(base::trimmed(text.substr(equals + 1)));
  if (!value) return fail(std::move(value.error()));
  return Line{number, std::string(base::trimmed(text.substr(0, equals))), *std::move(value)};
}

void SettingsFile::apply(CLI::App& command, const Line& line) {
  const auto names = names_of(command);
  if (std::ranges::find(names, line.name) == names.end()) {
    const std::string_view meant = base::nearest(line.name, names);
    return wrong(line.number, "unknown setting " + base::in_quotes(line.name) +
                                  (meant.empty() ? "; weir " + command.get_name() +
                                                       " --help lists them; write the name without dashes"
                                                 : "; did you mean " + std::string(meant) + "?"));
  }
  CLI::Option& option = *command.get_option("--" + line.name);
  const auto before = line_of_.find(line.name);
  if (before == line_of_.end() && option.count() > 0) return;  // the command line takes precedence
  if (before != line_of_.end() && !cli::may_repeat(option)) {
    return wrong(line.number, line.name + " is already set in line " + std::to_string(before->second) + "; keep one");
  }
  if (!cli::takes_value(option) && line.value != "true" && line.value != "false") {
    return wrong(line.number, line.name + " must be true or false, not " + base::in_quotes(line.value));
  }
  try {
    option.add_result(line.value);
    option.run_callback();
    line_of_.emplace(line.name, line.number);
  } catch (const CLI::ParseError& error) {
    wrong(line.number, error.what());
  }
}

Result<void> SettingsFile::apply(CLI::App& command) {
  if (file_.empty()) return {};
  const auto text = control::read_config(file_);
  if (!text) return fail(text.error().code, "--settings: " + text.error().message);
  std::string_view left = *text;
  for (std::size_t number = 1; !left.empty() && errors_.size() < kErrorsMax; ++number) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    std::string_view line = left.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = base::trimmed(line);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (is_comment(line)) continue;
    if (const auto parsed = parse(line, number)) {
      apply(command, *parsed);
    } else {
      wrong(number, parsed.error().message);
    }
  }
  if (errors_.empty()) return {};
  std::string message;
  for (const std::string& error : errors_) message += (message.empty() ? "" : "\n") + error;
  return fail(ErrorCode::invalid_argument, message);
}

std::string SettingsFile::with_place(std::string message) const {
  if (!message.starts_with("--")) return message;
  const auto found = line_of_.find(message.substr(2, message.find(':') - 2));
  if (found == line_of_.end()) return message;
  return file_ + ":" + std::to_string(found->second) + ": " + message;
}

}  // namespace weir::serve
