// Reads the inherited sockets from the environment, and validates each. See inheritance.h.
#include "server/life/inheritance.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "server/loop/counts.h"

namespace weir::server::life {
namespace {

constexpr int kSocketsMax = 4'096;

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  unsetenv(name);
  return text;
}

Error wrong(int number, std::string what) {
  return {ErrorCode::invalid_argument, "descriptor " + std::to_string(number) + " of LISTEN_FDS " + std::move(what), 0};
}

int option_of(int socket, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(socket, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

// Whether it can be a listener's socket. Also makes it non-blocking and close-on-exec.
Result<void> look_at(int number) {
  const int type = option_of(number, SO_TYPE), family = option_of(number, SO_DOMAIN);
  if (type < 0) return fail(wrong(number, "is not an open socket; pass a listening socket"));
  if (type != SOCK_STREAM || (family != AF_INET && family != AF_INET6 && family != AF_UNIX)) {
    return fail(wrong(number, "is not a stream socket; write ListenStream= in its .socket unit"));
  }
  if (option_of(number, SO_ACCEPTCONN) != 1) {
    return fail(wrong(number, "is not a listening socket; write Accept=no in its .socket unit"));
  }
  fcntl(number, F_SETFD, FD_CLOEXEC);
  fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK);
  return {};
}

}  // namespace

std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Result<Inheritance> take_inheritance() {
  const std::string pid = take_variable("LISTEN_PID"), count = take_variable("LISTEN_FDS"),
                    names = take_variable("LISTEN_FDNAMES"), succeeds = take_variable("WEIR_SUCCEEDS");
  unsetenv("LISTEN_PIDFDID");
  Inheritance out;
  if (base::to_number<int>(pid) != getpid()) return out;  // the variables are for another process
  const int sockets = base::to_number<int>(count).value_or(-1);
  if (sockets < 0 || sockets > kSocketsMax) {
    return fail(ErrorCode::invalid_argument, "LISTEN_FDS: " + base::in_quotes(count) +
                                                 " is not a whole number from 0 to " + std::to_string(kSocketsMax));
  }
  if (std::vector<std::string> parts = parts_of(succeeds); !parts.empty()) {
    out.predecessor = base::Descriptor(base::to_number<int>(parts[0]).value_or(-1));
    if (out.predecessor) fcntl(out.predecessor.get(), F_SETFD, FD_CLOEXEC);
    out.files.assign(std::next(parts.begin()), parts.end());
  }
  std::vector<std::string> listeners = parts_of(names);
  listeners.resize(static_cast<std::size_t>(sockets));  // missing names are empty
  for (int number = kFirstSocket; const std::string& listener : listeners) {
    if (auto looked = look_at(number); !looked) return fail(std::move(looked.error()));
    if (std::ranges::find(loop::kListenerNames, listener) == std::end(loop::kListenerNames)) {
      return fail(wrong(number, (listener.empty() ? "has no name" : "is called " + base::in_quotes(listener)) +
                                    "; write FileDescriptorName=http, grpc, resp or admin in its .socket unit"));
    }
    out.sockets.push_back({listener, base::Descriptor(number++)});
  }
  return out;
}

void notify_predecessor(base::Descriptor& predecessor) {
  if (!predecessor) return;
  const char ready = 'R';
  [[maybe_unused]] const ssize_t written = write(predecessor.get(), &ready, 1);
  predecessor.close();
}

}  // namespace weir::server::life
