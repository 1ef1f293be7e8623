// The options of a command from a file: one in each line, by its name without the dashes.
//
//   # where it listens
//   http = "0.0.0.0:8080"
//   config = /etc/weir/weir.yaml
//   force = false
//
// It goes by the options that the command has, so a new one can be set by itself. What the command line says goes
// before it. Secrets do not stand here: options name the files that hold them. One thread. Tested by
// tests/server/settings.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "weir/result.h"

namespace weir {

class SettingsFile {
 public:
  void add(CLI::App& app);

  // Gives the options of the command what the file says, if one was named. Every error is a line of the message, with
  // its place. To be called when the command line was read.
  Result<void> apply(CLI::App& command);

  // The message, `--name: why`, with the place in the file that gave the option this value, if it was the file.
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
  std::map<std::string, std::size_t> line_of_;  // by name: what this file set
  std::vector<std::string> errors_;
};

}  // namespace weir
