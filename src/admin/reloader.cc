// Reloads a config. See reloader.h.
#include "admin/reloader.h"

#include <string>

#include "admin/config_file.h"
#include "log.h"

namespace weir {

Reloader::~Reloader() = default;  // waits for the thread

Result<void> Reloader::load() {
  auto policy = load_policy(file_);
  if (!policy) return fail(std::move(policy.error()));
  auto applied = gate_.apply(*std::move(policy), force_);
  if (!applied) return fail(std::move(applied.error()));
  return {};
}

void Reloader::reload() {
  if (asked_.fetch_add(1) > 0) return;
  thread_ = std::jthread([this] { work(); });
}

void Reloader::work() {
  int done = 0;
  do {
    done = asked_.load();
    auto policy = load_policy(file_);
    auto applied = policy ? gate_.apply(*std::move(policy), force_) : Result<PolicyChanges>(fail(policy.error()));
    if (!applied) {
      log(LogLevel::error, "the rules stay as they were. " + applied.error().message);
    } else {
      log(LogLevel::info, file_ + " is in force, " + std::to_string(applied->lines.size()) + " changes");
      for (const std::string& line : applied->lines) log(LogLevel::info, "  " + line);
    }
  } while (asked_.fetch_sub(done) > done);
  if (done_) done_();
}

}  // namespace weir
