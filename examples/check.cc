// The smallest program with a limit. One user sends sixty requests. The first fifty pass (the burst), and the program
// prints how long each of the others has to wait.
#include <weir/limiter.h>

#include <cstdio>

int main() {
  auto limiter = weir::make_limiter("token_bucket", "10/s burst 50");
  if (!limiter) return std::puts(limiter.error().message.c_str()), 1;
  for (int i = 0; i < 60; ++i) {
    const auto decision = limiter->check("user:42");
    if (decision && !decision->allowed) std::printf("wait %ld us\n", long(decision->retry_after.count()));
  }
}
