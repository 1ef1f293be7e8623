// Starts Redis and reads its processor time. See redis.h.
#include "fleet/redis.h"

#include <csignal>
#include <cstdlib>

namespace weir::bench {
namespace {

constexpr Micros kTimeout{5'000'000};

double number_after(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name + ":");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + name.size() + 1, nullptr);
}

}  // namespace

OwnRedis::OwnRedis()
    : port_(free_port()),
      process_(start_redis_server(port_, Process::Cores::last)),
      target_(base::redis::parse_url("redis://127.0.0.1:" + std::to_string(port_)).value()),
      client_(target_) {}

double OwnRedis::cpu_us() {
  const auto info = client_.call({"INFO", "cpu"}, kTimeout);
  if (!info) throw Missing{"Redis does not answer: " + info.error().message};
  return 1e6 * (number_after(info->text, "used_cpu_sys") + number_after(info->text, "used_cpu_user"));
}

void OwnRedis::pause() { kill(process_.pid(), SIGSTOP); }
void OwnRedis::resume() { kill(process_.pid(), SIGCONT); }

}  // namespace weir::bench
