// Reads and writes the files of usage. See usage_files.h.
#include "usage/usage_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <tuple>

#include "base/file.h"
#include "usage/accounts.h"

namespace weir::usage {
namespace {

constexpr std::string_view kNew = ".new";  // suffix of a file that is being written
constexpr std::string_view kDamaged = ".damaged";

tl::unexpected<Error> usage_failed(const std::string& path, const std::string& what) {
  return fail(ErrorCode::unavailable, path + ": " + what + ": " + std::strerror(errno));
}

// `2026-09-21.0`
std::optional<UsageFiles::File> file_of(const std::string& folder, const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == name.npos || !parse_day(std::string_view(name).substr(0, dot))) return {};
  for (unsigned seat = 0; seat < UsageFiles::kSeats; ++seat) {
    if (name.substr(dot + 1) == std::to_string(seat))
      return UsageFiles::File{folder + '/' + name, name.substr(0, dot), seat};
  }
  return {};
}

}  // namespace

UsageFiles::~UsageFiles() {
  if (lock_ >= 0) close(lock_);  // also releases the lock
}

Result<void> UsageFiles::open(std::string folder) {
  folder_ = std::move(folder);
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return usage_failed(folder_, "cannot be created");
  for (seat_ = 0; seat_ < kSeats; ++seat_) {
    const std::string path = folder_ + "/seat." + std::to_string(seat_);
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return usage_failed(path, "cannot be opened");
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
      lock_ = file;
      return {};
    }
    const bool is_taken = errno == EWOULDBLOCK;
    const auto error = usage_failed(path, "cannot be locked");
    close(file);
    if (!is_taken) return error;
  }
  return fail(ErrorCode::exhausted, folder_ + ": " + std::to_string(kSeats) +
                                        " processes use this folder already; give each server its own --state file");
}

Result<std::vector<UsageFiles::File>> UsageFiles::list() const {
  std::vector<File> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (auto file = file_of(folder_, at->path().filename().string())) out.push_back(*std::move(file));
  }
  if (error) return fail(ErrorCode::unavailable, folder_ + ": cannot be listed: " + error.message());
  std::ranges::sort(out, {}, [](const File& file) { return std::tie(file.date, file.seat); });
  return out;
}

Result<std::string> UsageFiles::read(const File& file) {
  return base::read_file(file.path, kFileMax, base::Links::refused);
}

Result<void> UsageFiles::write(const std::string& date, std::string_view text) const {
  const std::string path = folder_ + '/' + date + '.' + std::to_string(seat_);
  return base::replace_file(path, text, std::string(kNew)).transform([](const base::Descriptor&) {});
}

Result<std::string> UsageFiles::set_aside(const File& file) {
  std::string aside = file.path + std::string(kDamaged);
  if (std::rename(file.path.c_str(), aside.c_str()) != 0) return usage_failed(file.path, "cannot be renamed");
  return aside;
}

void UsageFiles::forget_before(const std::string& date) const {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    for (const std::string_view ending : {kNew, kDamaged}) {
      if (name.ends_with(ending)) name.resize(name.size() - ending.size());
    }
    const auto file = file_of(folder_, name);
    if (file && file->date < date) unlink(at->path().c_str());
  }
}

}  // namespace weir::usage
