// A service that decides by rules in a file: it reads the rules, checks requests, and prints which rule denied.
//
// Usage: rules weir.yaml. Built by examples/CMakeLists.txt, run by tests/install.sh.
#include <weir/gate.h>

#include <cstdio>
#include <fstream>
#include <iterator>

int main(int count, char** words) {
  if (count < 2) return std::puts("usage: rules weir.yaml"), 2;
  std::ifstream file(words[1]);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto policy = weir::parse_policy(text, words[1]);
  if (!policy) return std::puts(policy.error().message.c_str()), 1;  // every error, with its line and column

  weir::Limiter limiter;
  weir::Gate gate(limiter);
  if (const auto applied = gate.apply(*policy); !applied) return std::puts(applied.error().message.c_str()), 1;

  for (int i = 0; i < 12; ++i) {
    const auto answer = gate.check({.user = "42", .ip = "192.0.2.1", .path = "/api/search"});
    if (!answer) return std::puts(answer.error().message.c_str()), 1;
    if (answer->allowed) continue;
    std::printf("request %d: %s\n", i, std::string(answer->binding_limit()->name).c_str());
    return 0;
  }
  return 1;
}
