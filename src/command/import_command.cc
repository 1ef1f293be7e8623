// Reads Envoy's files and writes rules. See import_command.h; src/envoy does the conversion.
#include "command/import_command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <utility>

#include "admin/config_file.h"
#include "admin/envoy_files.h"
#include "command/complain.h"
#include "weir/policy.h"

namespace weir {

const char* const kImportExamples =
    "  weir import envoy config/*.yaml -o weir.yaml     the files of envoyproxy/ratelimit as rules\n"
    "  weir import envoy config --explain               what is different then, and what rules cannot say, by line\n"
    "  weir serve --envoy config                        nothing needs to be rewritten: the files as they are\n"
    "\n";

namespace {

Result<EnvoyConfig> read_envoy(const std::vector<std::string>& paths) {
  std::vector<EnvoyFile> files;
  for (const std::string& path : paths) {
    if (path == "-") {
      auto text = read_config(path);
      if (!text) return fail(std::move(text.error()));
      files.push_back({"stdin", *std::move(text)});
      continue;
    }
    auto read = read_envoy_files(path);
    if (!read) return fail(std::move(read.error()));
    std::ranges::move(*read, std::back_inserter(files));
  }
  return parse_envoy(files);
}

// Messages about a file already begin with its name.
int complain_of_file(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return kCouldNot;
}

}  // namespace

ImportCommand::ImportCommand(CLI::App& app) {
  import_ = app.add_subcommand("import", "Rewrite the config of another limiter as rules");
  import_->add_flag("--explain", explain_, "What is different on purpose");
  import_->require_subcommand(0, 1);
  envoy_ = import_->add_subcommand("envoy", "Of Envoy's reference service, envoyproxy/ratelimit");
  envoy_->add_option("FILE", files_, "Its files, or folders of them; - is the standard input");
  envoy_->add_option("-o,--output", output_, "Write the rules to this new file")->type_name("FILE");
  envoy_->add_flag("--explain", explain_,
                   "Write no rules: tell what is different, and what these files say that rules cannot");
}

std::optional<int> ImportCommand::run() const {
  if (!*import_) return std::nullopt;
  if (!*envoy_ && !explain_) return complain("import from what? Write weir import envoy FILE", kNotUnderstood);
  if (explain_) return explain();
  if (files_.empty()) return complain("weir import envoy needs the files, or a folder of them", kNotUnderstood);
  const auto config = read_envoy(files_);
  if (!config) return complain_of_file(config.error().message);
  return write(import_envoy(*config));
}

int ImportCommand::explain() const {
  std::vector<std::string> notes;
  if (!files_.empty()) {
    const auto config = read_envoy(files_);
    if (!config) return complain_of_file(config.error().message);
    notes = import_envoy(*config).notes;
  }
  std::fputs(std::string(envoy_differences()).c_str(), stdout);
  if (files_.empty()) return 0;
  std::puts(notes.empty() ? "\nRules say all that these files say." : "\nWhat these files say and rules cannot:");
  for (const std::string& note : notes) std::printf("  %s\n", note.c_str());
  return 0;
}

std::string ImportCommand::text_of(const ImportedEnvoy& imported) const {
  std::string out = "# By `weir import envoy`";
  for (const std::string& file : files_) out.append(" ").append(file == "-" ? "the standard input" : file);
  out += ".\n# `weir import envoy --explain` tells how rules differ from the reference service.\n";
  for (const std::string& note : imported.notes) out += "# Not said here: " + note + '\n';
  return out + to_yaml(imported.policy);
}

int ImportCommand::write(const ImportedEnvoy& imported) const {
  for (const std::string& note : imported.notes) std::fprintf(stderr, "%s (warning)\n", note.c_str());
  if (imported.policy.rules.empty()) return complain("these files hold no limit that a rule can say", kCouldNot);
  const std::string text = text_of(imported);
  if (const auto read = parse_policy(text, "the rules"); !read) {
    return complain("the rules would not be read again: " + read.error().message, kCouldNot);
  }
  if (output_.empty()) {
    std::fputs(text.c_str(), stdout);
    return 0;
  }
  std::FILE* const file = std::fopen(output_.c_str(), "wx");
  const bool is_written = file != nullptr && std::fputs(text.c_str(), file) >= 0;
  const bool is_closed = file != nullptr && std::fclose(file) == 0;
  if (is_written && is_closed) {
    std::printf("%s: %zu rules; weir validate %s tells what is probably not meant\n", output_.c_str(),
                imported.policy.rules.size(), output_.c_str());
    return 0;
  }
  const int error = errno;
  return complain(output_ + ": " + std::strerror(error) +
                      (error == EEXIST ? "; name a new file, or leave -o out and look at it first" : ""),
                  kCouldNot);
}

}  // namespace weir
