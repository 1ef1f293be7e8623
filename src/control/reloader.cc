// The loop of the reloader's thread. See reloader.h.
#include "control/reloader.h"

namespace weir::control {
namespace {

constexpr int kTickMs = 500;
constexpr int kLookEvery = 4;  // ticks: check the file itself, in case its folder reports nothing

}  // namespace

Reloader::Reloader(Control& control, Watching watching)
    : control_(control),
      watches_(watching == Watching::on && control.has_rules()),
      watch_(watches_ ? [&control] { return control.folders(); } : FileWatch::Folders()),
      thread_([this](const std::stop_token& stop) { work(stop); }) {}

Reloader::~Reloader() {
  thread_.request_stop();
  watch_.wake();
}

void Reloader::reload() {
  is_asked_ = true;
  watch_.wake();
}

void Reloader::work(const std::stop_token& stop) {
  for (int turns = 1; !stop.stop_requested(); ++turns) {
    const bool has_happened = watch_.wait(kTickMs);
    if (stop.stop_requested()) return;
    if (is_asked_.exchange(false)) {
      (void)control_.reload();
      if (done_) done_();
    } else if (watches_ && (has_happened || turns % kLookEvery == 0)) {
      (void)control_.reload(ReloadWhen::if_changed);
    }
    control_.tick();
  }
}

}  // namespace weir::control
