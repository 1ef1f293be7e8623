// Reads a whole file, as tests do that compare or change texts.
//
// Returns an empty text if there is no such file. Any thread.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace weir::test {

inline std::string read_file(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace weir::test
