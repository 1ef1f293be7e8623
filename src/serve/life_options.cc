// The flags for shutdown and upgrade. See life_options.h.
#include "serve/life_options.h"

#include <charconv>
#include <cstdint>
#include <tuple>
#include <utility>

#include "cli/complain.h"
#include "weir/duration.h"

namespace weir {
namespace {

// Parses a duration, or whole seconds.
Result<Micros> read_wait(const char* option, const std::string& text) {
  constexpr std::int64_t kMostSeconds = 86'400;
  std::int64_t seconds = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, seconds);
  if (read.ec == std::errc{} && read.ptr == end && seconds >= 0 && seconds <= kMostSeconds) {
    return Micros{seconds * 1'000'000};
  }
  auto wait = parse_duration(text);
  if (!wait) return fail(wait.error().code, std::string(option) + ": " + wait.error().message);
  return wait;
}

}  // namespace

void LifeOptions::add(CLI::App& app) {
  app.add_option("--drain-delay", drain_delay, "Time to keep serving after SIGTERM while /readyz returns 503; 0: none")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--upgrade-max", upgrade_max, "Maximum time for the new process to become ready after SIGUSR2")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--drain-max", drain_max, "Maximum time to finish requests in flight, after --drain-delay")
      ->type_name("TIME")
      ->capture_default_str();
}

Result<void> LifeOptions::fill(ServerOptions& options) const {
  const std::tuple<const char*, const std::string&, Micros&> waits[] = {
      {"--drain-delay", drain_delay, options.life.drain_delay},
      {"--drain-max", drain_max, options.life.drain_max},
      {"--upgrade-max", upgrade_max, options.life.upgrade_max}};
  for (const auto& [option, text, wait] : waits) {
    const auto read = read_wait(option, text);
    if (!read) return fail(read.error());
    wait = *read;
  }
  options.life.succession = own_command();
  auto inherited = take_inheritance();
  if (!inherited) return fail(std::move(inherited.error()));
  options.life.inherited = *std::move(inherited);
  return {};
}

}  // namespace weir
