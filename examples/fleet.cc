// A service whose processes share one limit through Redis, with blocking and with asynchronous checks.
//
// Usage: fleet redis://127.0.0.1:6379. Built by examples/CMakeLists.txt, run by tests/install.sh.
#include <weir/fleet.h>

#include <atomic>
#include <chrono>
#include <cstdio>

using namespace std::chrono_literals;

int main(int count, char** words) {
  if (count < 2) return std::puts("usage: fleet redis://HOST:PORT"), 2;
  // How long a decision waits for Redis at most. The default is 15 ms; with 10 s, Redis decides even on a busy machine.
  const auto fleet = weir::open_fleet({.url = words[1], .deadline = 10s, .label = "the example"});
  if (!fleet) return std::puts(fleet.error().message.c_str()), 1;
  weir::Limiter limiter({.shared = fleet->store()});
  if (!fleet->wait_until_strict(10s)) std::puts("Redis is unavailable; this process uses the whole limit alone");

  // Blocking: the call returns within the deadline.
  const weir::Limit hourly = weir::compile("1000/hour", weir::Algorithm::fixed_window).value();
  const auto decision = limiter.check("user:42", hourly);
  if (!decision) return std::puts(decision.error().message.c_str()), 1;
  std::printf("check: allowed %d, remaining %d, decided by %s\n", decision->allowed, int(decision->remaining),
              std::string(weir::to_string(decision->decided_by)).c_str());

  // Asynchronous: a thread of the AsyncLimiter calls the callbacks. All have been called when its destructor returns.
  std::atomic<int> admitted{0};
  {
    weir::AsyncLimiter async(limiter, *fleet);
    const weir::Limit few = weir::compile("100/hour", weir::Algorithm::fixed_window).value();
    const weir::Charge charges[] = {{"user:42", &hourly}, {"user:42/search", &few}};
    for (int i = 0; i < 300; ++i) {
      async.check(charges, [&](weir::Result<weir::Verdict> verdict) { admitted += verdict && verdict->allowed; });
    }
  }
  std::printf("async: admitted %d of 300\n", admitted.load());
  const auto left = limiter.peek("user:42", hourly);
  std::printf("left: %d\n", left ? int(left->remaining) : -1);
  return 0;
}
