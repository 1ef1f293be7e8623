// The file format: a line that names the source, rows preceded by their lengths, and a line with the hash of
// everything before it. So no damaged or foreign bytes are taken for a row. See plan_memory.h.
#include "plans/plan_memory.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/file.h"
#include "base/sha256.h"
#include "plans/plan_source.h"

namespace weir::plans {
namespace {

constexpr std::string_view kHead = "weir plans 1 ", kEnd = "end sha256:";
constexpr std::size_t kEndBytes = kEnd.size() + 64 + 1;
constexpr std::size_t kBytesMax = std::size_t{8} << 30;
constexpr std::size_t kTextMax = 8 * kPlanTextMax;

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
  text += std::string(kEnd) + base::hex(base::sha256(text)) + '\n';
  // Another server, or another directory of this server, may be writing its file at the same time.
  static std::atomic<std::uint64_t> count{0};
  const std::string ending = ".new-" + std::to_string(::getpid()) + '-' + std::to_string(count.fetch_add(1));
  return base::replace_file(path, text, ending).transform([](const base::Descriptor&) {});
}

Result<std::vector<RememberedRow>> read_plan_memory(const std::string& path, std::string_view source) {
  const auto text = base::read_file(path, kBytesMax);
  if (!text) return fail(text.error());
  std::string_view rest = *text;
  if (!rest.starts_with(kHead)) return damaged(path);
  const std::string head = std::string(kHead) + std::string(source) + '\n';
  if (!rest.starts_with(head)) return fail(ErrorCode::not_found, path + " belongs to another database");
  const std::string_view body = rest.substr(0, rest.size() < kEndBytes ? 0 : rest.size() - kEndBytes);
  if (body.size() < head.size() ||
      rest.substr(body.size()) != std::string(kEnd) + base::hex(base::sha256(body)) + '\n') {
    return damaged(path);
  }
  rest = body.substr(head.size());
  std::vector<RememberedRow> rows;
  while (!rest.empty()) {
    RememberedRow row;
    std::size_t subject_bytes = 0, text_bytes = 0;
    const bool is_whole = take_number(rest, ' ', kPlanSubjectMax, subject_bytes) &&
                          take_number(rest, ' ', kTextMax, text_bytes) && take_text(rest, subject_bytes, row.subject) &&
                          take_text(rest, text_bytes, row.text) && rest.starts_with('\n');
    if (!is_whole) return damaged(path);
    rest.remove_prefix(1);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace weir::plans
