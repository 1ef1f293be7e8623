// Reads the password file at each use, so that the password can change without a restart. See redis_url.h. Tested by
// redis_url_test.cc and client_test.cc.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/redis_url.h"

namespace weir::redis {
namespace {

constexpr const char* kFix = "; write the password into it, and make it readable for the user that runs this program";

tl::unexpected<Error> bad_file(const std::string& file, const std::string& what) {
  return fail(ErrorCode::unavailable, "the password file " + file + " " + what);
}

}  // namespace

Result<std::string> read_password(const Credentials& credentials) {
  if (credentials.password_file.empty()) return credentials.password;
  const std::string& name = credentials.password_file;
  const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // opening a pipe would block
  if (!file) return bad_file(name, std::string("cannot be opened: ") + std::strerror(errno) + kFix);
  std::string text(kPasswordMax + 2, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad_file(name, std::string("cannot be read: ") + std::strerror(errno) + kFix);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.size() > kPasswordMax) return bad_file(name, "has more than 4096 bytes; write only the password into it");
  if (text.empty()) return bad_file(name, "is empty; write the password into it");
  return text;
}

}  // namespace weir::redis
