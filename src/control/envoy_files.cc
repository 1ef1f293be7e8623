// Finds, reads and compiles Envoy's files. See envoy_files.h.
#include "control/envoy_files.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "control/config_file.h"
#include "control/file_watch.h"

namespace weir::control {
namespace {

namespace fs = std::filesystem;

constexpr int kFolderDepthMax = 16;

bool is_one(const fs::path& name) {
  static constexpr std::array<std::string_view, 3> kEndings = {".yaml", ".yml", ".json"};
  return std::ranges::find(kEndings, name.extension().string()) != kEndings.end();
}

tl::unexpected<Error> cannot_list(const std::string& path, const std::error_code& error) {
  return fail(ErrorCode::unavailable, path + ": cannot be listed: " + error.message());
}

// Calls `see` for every entry that does not begin with a dot, including folders.
template <class See>
std::error_code walk(const std::string& root, See see) {
  std::error_code error;
  fs::recursive_directory_iterator at(root, error), end;
  while (!error && at != end) {
    const bool is_hidden = at->path().filename().string().starts_with('.');
    if (is_hidden || at.depth() >= kFolderDepthMax) at.disable_recursion_pending();
    if (!is_hidden) see(*at);
    at.increment(error);
  }
  return error;
}

}  // namespace

Result<std::vector<envoy::EnvoyFile>> read_envoy_files(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  std::string root;
  if (fs::is_directory(path, error)) {
    // Resolves links once, so that all files belong to one state of the folder.
    root = fs::canonical(path, error).string();
    if (error) return cannot_list(path, error);
    error = walk(root, [&](const fs::directory_entry& entry) {
      std::error_code ignored;
      if (is_one(entry.path()) && !entry.is_directory(ignored)) names.push_back(entry.path().string());
    });
    if (error) return cannot_list(path, error);
    if (names.empty()) return fail(ErrorCode::unavailable, path + ": contains no .yaml, .yml or .json file");
    std::ranges::sort(names);
  } else {
    names.push_back(path);
  }
  if (names.size() > envoy::kEnvoyFilesMax) {
    return fail(ErrorCode::out_of_range, path + ": contains " + std::to_string(names.size()) + " files; at most " +
                                             std::to_string(envoy::kEnvoyFilesMax) + " are allowed");
  }
  std::vector<envoy::EnvoyFile> files;
  std::size_t bytes = 0;
  for (const std::string& name : names) {
    auto text = read_config(name);
    if (!text) return fail(std::move(text.error()));
    bytes += text->size();
    if (bytes > kEnvoyBytesMax) {
      return fail(ErrorCode::out_of_range,
                  path + ": its files together have more than " + std::to_string(kEnvoyBytesMax) + " bytes (16 MiB)");
    }
    // Uses the folder's name as given, not as its links resolve.
    const bool is_below = !root.empty() && name.starts_with(root + '/');
    files.push_back({is_below ? path + name.substr(root.size()) : name, *std::move(text)});
  }
  return files;
}

std::set<std::string> envoy_folders(const std::string& path) {
  std::set<std::string> folders = FileWatch::folders_of(path);
  std::error_code error;
  if (!fs::is_directory(path, error)) return folders;
  folders.merge(FileWatch::folders_of(path + "/x"));
  const std::string root = fs::canonical(path, error).string();
  if (error) return folders;
  (void)walk(root, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (folders.size() >= kEnvoyFoldersMax) return;
    if (entry.is_symlink(ignored)) {
      folders.merge(FileWatch::folders_of(entry.path().string()));
    } else if (entry.is_directory(ignored)) {
      folders.insert(entry.path().string());
    }
  });
  return folders;
}

Result<EnvoyLoaded> load_envoy(const std::vector<envoy::EnvoyFile>& files, Algorithm algorithm) {
  auto config = envoy::parse_envoy(files);
  if (!config) return fail(std::move(config.error()));
  auto rules = envoy::EnvoyRules::compile(*config, algorithm);
  if (!rules) return fail(std::move(rules.error()));
  return EnvoyLoaded{*std::move(rules), std::move(config->warnings)};
}

std::string envoy_path(const EnvoyImport& import, const std::string& config) {
  if (import.path.empty() || config.empty() || config == "-") return import.path;
  return (fs::path(config).parent_path() / import.path).string();
}

}  // namespace weir::control
