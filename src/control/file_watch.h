// Reports that a file may have changed: written, replaced by a rename, recreated, or behind a link that now leads
// elsewhere, as with mounted volumes.
//
// It watches folders instead of the file: the folder of the file, and of every link on the way to it. Where that does
// not work, as on some network file systems, the caller must also check the file from time to time. wait() belongs to
// one thread, wake() to any. Tested by file_watch_test.cc.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/descriptor.h"

namespace weir::control {

class FileWatch {
 public:
  using Folders = std::function<std::set<std::string>()>;

  explicit FileWatch(const std::string& path);
  // Watches the folders that `wanted` returns at the time. Empty: watches nothing, but wait() still works.
  explicit FileWatch(Folders wanted);

  // Waits until something has happened in one of the folders and then nothing for a moment, or wake() is called, or
  // the time is over. True in the first case.
  bool wait(int timeout_ms);
  void wake() const;

  // The folders on the way to the file, with links resolved.
  static std::set<std::string> folders_of(const std::string& path);

 private:
  bool follow();
  bool drain() const;

  const Folders wanted_;
  base::Descriptor events_;
  const base::Descriptor wake_;
  std::set<std::string> folders_;
};

}  // namespace weir::control
