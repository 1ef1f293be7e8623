// The files of Envoy's reference rate limit service from a folder, as that service finds them: all below it that end in
// .yaml, .yml or .json, whatever their names.
//
// Names that begin with a dot are passed over, as the copies are that mounted volumes keep. The folder may be a link,
// and a file, too, but folders below it are not followed when they are links: they could lead in a ring. One file
// alone can be named, too. Any thread. Tested by envoy_files_test.cc and tests/server/envoy_files.sh.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "envoy/envoy_config.h"
#include "envoy/envoy_rules.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kEnvoyBytesMax = std::size_t{16} << 20;  // of all files
inline constexpr std::size_t kEnvoyFoldersMax = 1'000;

// In the order of their names. It is an error if there is none.
Result<std::vector<EnvoyFile>> read_envoy_files(const std::string& path);

// The folders in which something happens when one of them becomes another.
std::set<std::string> envoy_folders(const std::string& path);

struct EnvoyLoaded {
  std::shared_ptr<const EnvoyRules> rules{};
  std::vector<std::string> warnings{};
};

// What the files say, ready to be put in force. Every error is a line.
Result<EnvoyLoaded> load_envoy(const std::vector<EnvoyFile>& files, Algorithm algorithm);

// Where the import of a config lies: from the config's folder.
std::string envoy_path(const EnvoyImport& import, const std::string& config);

}  // namespace weir
