// Reads a config file within its bounds. See config_file.h.
#include "control/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir {
namespace {

tl::unexpected<Error> cannot(const std::string& path, const std::string& why) {
  return fail(ErrorCode::unavailable, path + ": " + why);
}

// Reads one byte more than the maximum, to detect a file that is too long. The buffer grows with the content: many
// files are read often, and some texts are kept.
Result<std::string> read_all(int file, const std::string& path, std::size_t likely_size) {
  std::string text;
  std::size_t size = 0;
  while (size <= kPolicyBytesMax) {
    if (size == text.size()) text.resize(std::min(kPolicyBytesMax + 1, size == 0 ? likely_size + 1 : 2 * size));
    const ssize_t got = read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot(path, std::string("cannot be read: ") + std::strerror(errno));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  if (size <= kPolicyBytesMax) return text;
  return cannot(path, "is longer than " + std::to_string(kPolicyBytesMax) + " bytes (1 MiB), the maximum for a config");
}

}  // namespace

Result<std::string> read_config(const std::string& path) {
  if (path == "-") return read_all(STDIN_FILENO, "-", 4'095);
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // a FIFO without a writer must not block
  if (file < 0) return cannot(path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat about {};
  const bool is_plain = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  auto text =
      is_plain ? read_all(file, path, static_cast<std::size_t>(about.st_size)) : cannot(path, "is not a regular file");
  close(file);
  return text;
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
  if (text->empty()) return cannot(path, "is empty; write the secret into its first line");
  return text;
}

bool is_open_to_others(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && (about.st_mode & (S_IROTH | S_IWOTH)) != 0;
}

}  // namespace weir
