// The file format: a line that names the source, rows preceded by their lengths, and a line with the hash of
// everything before it. So no damaged or foreign bytes are taken for a row. See plan_memory.h.
#include "plans/plan_memory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/fresh_file.h"
#include "base/sha256.h"
#include "plans/subject.h"

namespace weir {
namespace {

constexpr std::string_view kHead = "weir plans 1 ", kEnd = "end sha256:";
constexpr std::size_t kEndBytes = kEnd.size() + 64 + 1;
constexpr std::size_t kBytesMax = std::size_t{8} << 30;
constexpr std::size_t kTextMax = 8 * kPlanTextMax;

tl::unexpected<Error> failed(const std::string& path, const char* what) {
  return fail(ErrorCode::unavailable, path + " cannot be " + what + ": " + std::strerror(errno));
}

tl::unexpected<Error> damaged(const std::string& path) {
  return fail(ErrorCode::unavailable, path + " is damaged; the server replaces it after it has read the database");
}

// Reads a number and the character after it.
bool take_number(std::string_view& rest, char behind, std::size_t most, std::size_t& out) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  if (error != std::errc{} || end == rest.data() + rest.size() || *end != behind || out > most) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()) + 1);
  return true;
}

bool take_text(std::string_view& rest, std::size_t size, std::string& out) {
  if (rest.size() < size) return false;
  out = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

}  // namespace

Result<void> write_plan_memory(const std::string& path, std::string_view source,
                               const std::vector<RememberedRow>& rows) {
  std::string text = std::string(kHead) + std::string(source) + '\n';
  for (const RememberedRow& row : rows) {
    text += std::to_string(row.subject.size()) + ' ' + std::to_string(row.text.size()) + ' ';
    text.append(row.subject).append(row.text).append("\n");
  }
  text += std::string(kEnd) + hex(sha256(text)) + '\n';
  // Another server, or another directory of this server, may be writing its file at the same time.
  static std::atomic<std::uint64_t> count{0};
  const std::string beside = path + ".new-" + std::to_string(::getpid()) + '-' + std::to_string(count.fetch_add(1));
  const int file = open_fresh_file(beside);
  if (file < 0) return failed(beside, "created");
  const bool is_written = write_all(file, text) && ::fsync(file) == 0;
  const int error = errno;
  ::close(file);
  errno = error;
  if (is_written && std::rename(beside.c_str(), path.c_str()) == 0) return {};
  auto why = failed(path, "written");
  ::unlink(beside.c_str());
  return why;
}

Result<std::vector<RememberedRow>> read_plan_memory(const std::string& path, std::string_view source) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return fail(ErrorCode::not_found, path + " does not exist");
  if (!S_ISREG(about.st_mode) || static_cast<std::size_t>(about.st_size) > kBytesMax) return damaged(path);
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return failed(path, "read");
  std::string_view rest = text;
  if (!rest.starts_with(kHead)) return damaged(path);
  const std::string head = std::string(kHead) + std::string(source) + '\n';
  if (!rest.starts_with(head)) return fail(ErrorCode::not_found, path + " belongs to another database");
  const std::string_view body = rest.substr(0, rest.size() < kEndBytes ? 0 : rest.size() - kEndBytes);
  if (body.size() < head.size() || rest.substr(body.size()) != std::string(kEnd) + hex(sha256(body)) + '\n') {
    return damaged(path);
  }
  rest = body.substr(head.size());
  std::vector<RememberedRow> rows;
  while (!rest.empty()) {
    RememberedRow row;
    std::size_t subject_bytes = 0, text_bytes = 0;
    const bool is_whole = take_number(rest, ' ', kSubjectBytesMax, subject_bytes) &&
                          take_number(rest, ' ', kTextMax, text_bytes) && take_text(rest, subject_bytes, row.subject) &&
                          take_text(rest, text_bytes, row.text) && rest.starts_with('\n');
    if (!is_whole) return damaged(path);
    rest.remove_prefix(1);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace weir
