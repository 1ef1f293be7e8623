// Reading and replacing files by system calls. See file.h.
#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace weir::base {
namespace {

tl::unexpected<Error> cannot_be(const std::string& path, const char* what, ErrorCode code = ErrorCode::unavailable) {
  return fail(code, path + ": cannot be " + what + ": " + std::strerror(errno));
}

// The buffer grows with the content: many files are read often, and some texts are kept.
Result<std::string> read_at_most(int file, const std::string& path, std::size_t bytes, std::size_t likely_size) {
  std::string text;
  std::size_t size = 0;
  while (size < bytes) {
    if (size == text.size()) text.resize(std::min(bytes, size == 0 ? likely_size + 1 : 2 * size));
    const ssize_t got = ::read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_be(path, "read");
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

struct RegularFile {
  Descriptor file{};
  std::size_t size = 0;
};

Result<RegularFile> open_regular(const std::string& path, Links links) {
  const int no_links = links == Links::refused ? O_NOFOLLOW : 0;
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | no_links));
  if (!file) return cannot_be(path, "opened", errno == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return fail(ErrorCode::unavailable, path + ": is not a regular file");
  }
  return RegularFile{std::move(file), static_cast<std::size_t>(about.st_size)};
}

}  // namespace

// Reads one byte more than the maximum, to detect a file that is too long.
Result<std::string> read_rest(int file, const std::string& path, std::size_t bytes_max, std::size_t likely_size) {
  auto text = read_at_most(file, path, bytes_max + 1, likely_size);
  if (!text || text->size() <= bytes_max) return text;
  return fail(ErrorCode::out_of_range, path + ": is longer than " + std::to_string(bytes_max) + " bytes, the maximum");
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max, Links links) {
  const auto opened = open_regular(path, links);
  if (!opened) return fail(opened.error());
  return read_rest(opened->file.get(), path, bytes_max, opened->size);
}

Result<std::string> read_start(const std::string& path, std::size_t bytes) {
  const auto opened = open_regular(path, Links::followed);
  if (!opened) return fail(opened.error());
  return read_at_most(opened->file.get(), path, bytes, opened->size);
}

Result<Descriptor> replace_file(const std::string& path, std::string_view text, const std::string& ending,
                                FileLock lock) {
  const std::string beside = path + ending;
  if (::unlink(beside.c_str()) != 0 && errno != ENOENT) return cannot_be(beside, "replaced");
  Descriptor file(::open(beside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return cannot_be(beside, "created");
  const bool is_written = write_all(file.get(), text) && ::fsync(file.get()) == 0 &&
                          (lock == FileLock::none || ::flock(file.get(), LOCK_EX | LOCK_NB) == 0);
  if (!is_written || std::rename(beside.c_str(), path.c_str()) != 0) {
    auto error = cannot_be(path, "written");
    ::unlink(beside.c_str());
    return error;
  }
  sync_folder_of(path);
  return file;
}

void sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file) ::fsync(file.get());
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(file, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace weir::base
