// Tells that a file may have become another: written, renamed into place, removed and made anew, or reached by links
// that now lead elsewhere, as those of mounted volumes do.
//
// The folders are watched, not the file: of the file, and of every link on the way to it. Where that does not work,
// as on some network file systems, whoever waits looks himself once in a while. wait() belongs to one thread, wake()
// to any. Tested by file_watch_test.cc.
#pragma once

#include <functional>
#include <set>
#include <string>

namespace weir {

class FileWatch {
 public:
  using Folders = std::function<std::set<std::string>()>;

  explicit FileWatch(const std::string& path);
  // Whatever folders these are at the time. Empty: nothing is watched, but it can be waited.
  explicit FileWatch(Folders wanted);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // Until something has happened in one of the folders and then nothing for a moment, or somebody wakes it, or the time
  // is over. True in the first case.
  bool wait(int timeout_ms);
  void wake() const;

  // The folders on the way to the file, links followed.
  static std::set<std::string> folders_of(const std::string& path);

 private:
  bool follow();
  bool drain() const;

  const Folders wanted_;
  int events_ = -1;
  int wake_ = -1;
  std::set<std::string> folders_;
};

}  // namespace weir
