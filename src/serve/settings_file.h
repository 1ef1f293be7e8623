// A command's options from a file: one per line, by the option's name without dashes.
//
//   # where it listens
//   http = "0.0.0.0:8080"
//   config = /etc/weir/weir.yaml
//   force = false
//
// The file accepts the options that the command declares, so a new option is accepted automatically. The command line
// takes precedence over the file. Secrets are not in this file: options name the files that contain them. One thread.
// Tested by tests/server/settings.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "weir/result.h"

namespace weir::serve {

class SettingsFile {
 public:
  void add(CLI::App& app);

  // If --settings names a file, sets the command's options from it. The message has one line per error, with its
  // place. Call it after the command line is parsed.
  Result<void> apply(CLI::App& command);

  // Takes a message `--name: why`. If the file set this option, adds the place in the file.
  std::string with_place(std::string message) const;

 private:
  struct Line {
    std::size_t number = 0;
    std::string name{}, value{};
  };

  void apply(CLI::App& command, const Line& line);
  Result<Line> parse(std::string_view text, std::size_t number) const;
  void wrong(std::size_t line, const std::string& why);

  std::string file_;
  std::map<std::string, std::size_t> line_of_;  // the options that this file set
  std::vector<std::string> errors_;
};

}  // namespace weir::serve
