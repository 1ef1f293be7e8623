// A pipe and a signal handler. See signals.h.
#include "server/life/signals.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace weir::server::life {

bool Signals::open(std::initializer_list<int> signals) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  out_ = base::Descriptor(ends[0]);
  in_ = base::Descriptor(ends[1]);
  write_end = in_.get();
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    const int before = errno;
    send(signal);
    errno = before;
  };
  action.sa_flags = SA_RESTART;
  for (const int signal : signals) sigaction(signal, &action, nullptr);
  return true;
}

void Signals::send(int signal) {
  const char byte = static_cast<char>(signal);
  [[maybe_unused]] const ssize_t written = write(write_end, &byte, 1);
}

int Signals::next(Micros for_us, int other) const {
  constexpr std::int64_t kMostMs = 60'000;  // callers that wait longer call again
  const std::int64_t ms = std::clamp<std::int64_t>((for_us.count() + 999) / 1'000, 0, kMostMs);
  std::array<pollfd, 2> ends = {{{out_.get(), POLLIN, 0}, {other, POLLIN, 0}}};
  if (poll(ends.data(), ends.size(), static_cast<int>(ms)) <= 0) return kTimeIsOver;
  char signal = 0;
  if ((ends[0].revents & POLLIN) != 0 && read(out_.get(), &signal, 1) == 1) return signal;
  return ends[1].revents != 0 ? kOther : kTimeIsOver;
}

}  // namespace weir::server::life
