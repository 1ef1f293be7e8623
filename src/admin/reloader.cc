// Reloads a config. See reloader.h.
#include "admin/reloader.h"

#include <cstdio>

#include "admin/config_file.h"

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
      std::fprintf(stderr, "weir: the rules stay as they were. %s\n", applied.error().message.c_str());
    } else {
      std::fprintf(stderr, "weir: %s is in force, %zu changes\n", file_.c_str(), applied->lines.size());
      for (const std::string& line : applied->lines) std::fprintf(stderr, "weir:   %s\n", line.c_str());
    }
  } while (asked_.fetch_sub(done) > done);
  if (done_) done_();
}

}  // namespace weir
