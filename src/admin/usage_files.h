// The folder that spending is kept in between two lives of a server: a file a day, each replaced as a whole.
//
// Several processes may use the folder, as while one takes over from another. Each has a seat, the first that nobody
// has, and writes only the files of its seat, `2026-09-21.0`; a lock that ends with the process says that it is taken.
// Who takes a seat goes on with its files, and all files together are what was spent, so nothing is counted twice or
// written over, whoever was killed when. One thread at a time. Tested by usage_files_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/subject.h"
#include "weir/result.h"
#include "weir/spending.h"

namespace weir {

class UsageFiles {
 public:
  static constexpr unsigned kSeats = 16;
  // Of a line: six numbers, and a subject of which each byte may be written as four. More is no file of ours.
  static constexpr std::size_t kLineMax = 6 * 20 + 4 * kSubjectBytesMax + 32;
  static constexpr std::size_t kFileMax = kSpendingSubjectsMax * kLineMax;

  struct File {
    std::string path{};
    std::string date{};
    unsigned seat = 0;
  };

  UsageFiles() = default;
  ~UsageFiles();
  UsageFiles(const UsageFiles&) = delete;
  UsageFiles& operator=(const UsageFiles&) = delete;

  // Makes the folder if it is not there, and takes a seat.
  Result<void> open(std::string folder);
  unsigned seat() const { return seat_; }

  // Of all seats, in their order; what has another name is none.
  Result<std::vector<File>> list() const;
  static Result<std::string> read(const File& file);
  // The file of a day, on the disk when this returns.
  Result<void> write(const std::string& date, std::string_view text) const;
  // Out of the way, for who may want to look at it. Its new name.
  static Result<std::string> set_aside(const File& file);
  // Those of days before this one, of all seats, with what was set aside or half written.
  void forget_before(const std::string& date) const;

 private:
  std::string folder_;
  unsigned seat_ = 0;
  int lock_ = -1;
};

}  // namespace weir
