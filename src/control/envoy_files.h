// Reads the files of Envoy's reference rate limit service from a folder, as that service does: all files below it
// that end in .yaml, .yml or .json, whatever their names.
//
// Names that begin with a dot are skipped, because mounted volumes keep copies under such names. The folder and the
// files may be links. Folders below it that are links are not followed, since they could form a cycle. The path may
// also name a single file. Any thread. Tested by envoy_files_test.cc and tests/server/envoy_files.sh.
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

namespace weir::control {

inline constexpr std::size_t kEnvoyBytesMax = std::size_t{16} << 20;  // of all files
inline constexpr std::size_t kEnvoyFoldersMax = 1'000;

// Sorted by name. It is an error if there are none.
Result<std::vector<envoy::EnvoyFile>> read_envoy_files(const std::string& path);

// The folders to watch for changes of the files.
std::set<std::string> envoy_folders(const std::string& path);

struct EnvoyLoaded {
  std::shared_ptr<const envoy::EnvoyRules> rules{};
  std::vector<std::string> warnings{};
};

// The compiled rules. The error has one line per mistake.
Result<EnvoyLoaded> load_envoy(const std::vector<envoy::EnvoyFile>& files, Algorithm algorithm);

// The path of a config's import, relative to the config's folder.
std::string envoy_path(const EnvoyImport& import, const std::string& config);

}  // namespace weir::control
