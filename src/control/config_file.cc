// Reads a config file within its bounds. See config_file.h.
#include "control/config_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"

namespace weir::control {

Result<std::string> read_config(const std::string& path) {
  auto text =
      path == "-" ? base::read_rest(STDIN_FILENO, path, kPolicyBytesMax) : base::read_file(path, kPolicyBytesMax);
  if (text) return text;
  const bool is_long = text.error().code == ErrorCode::out_of_range;
  return fail(ErrorCode::unavailable, text.error().message + (is_long ? " for a config (1 MiB)" : ""));
}

Result<Policy> load_policy(const std::string& path) {
  const auto text = read_config(path);
  if (!text) return fail(text.error());
  return parse_policy(*text, path == "-" ? "stdin" : path);
}

Result<std::string> read_secret(const std::string& path) {
  auto text = read_config(path);
  if (!text) return text;
  text->resize(std::min(text->find_first_of("\r\n"), text->size()));
  if (text->empty()) return fail(ErrorCode::unavailable, path + ": is empty; write the secret into its first line");
  return text;
}

bool is_open_to_others(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && (about.st_mode & (S_IROTH | S_IWOTH)) != 0;
}

}  // namespace weir::control
