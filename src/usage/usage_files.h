// The folder that keeps usage across restarts: one file per day, each replaced as a whole.
//
// Several processes may use the folder, as during an upgrade. Each takes a seat, the first free one, and writes only
// the files of its seat, such as `2026-09-21.0`. A lock that ends with the process marks the seat as taken. The next
// owner of a seat continues its files, and usage is the sum of all files. So nothing is counted twice or overwritten,
// whichever process is killed, and when. One thread at a time. Tested by
// control/usage_control_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/subject.h"
#include "weir/result.h"
#include "weir/usage.h"

namespace weir::usage {

class UsageFiles {
 public:
  static constexpr unsigned kSeats = 16;
  // Of a line: six numbers, and a subject whose bytes may each be written as four. A larger file is not a usage file.
  static constexpr std::size_t kLineMax = 6 * 20 + 4 * policy::kSubjectBytesMax + 32;
  static constexpr std::size_t kFileMax = kUsageSubjectsMax * kLineMax;

  struct File {
    std::string path{};
    std::string date{};
    unsigned seat = 0;
  };

  UsageFiles() = default;
  ~UsageFiles();
  UsageFiles(const UsageFiles&) = delete;
  UsageFiles& operator=(const UsageFiles&) = delete;

  // Creates the folder if it does not exist, and takes a seat.
  Result<void> open(std::string folder);
  unsigned seat() const { return seat_; }

  // The files of all seats, sorted; files with other names are ignored.
  Result<std::vector<File>> list() const;
  static Result<std::string> read(const File& file);
  // Writes the file of a day; it is on disk when this returns.
  Result<void> write(const std::string& date, std::string_view text) const;
  // Renames the file so that people can inspect it. Returns its new name.
  static Result<std::string> set_aside(const File& file);
  // Removes the files of earlier days, of all seats, including damaged and half-written ones.
  void forget_before(const std::string& date) const;

 private:
  std::string folder_;
  unsigned seat_ = 0;
  int lock_ = -1;
};

}  // namespace weir::usage
