// Parses lines of digits. See integers.h; any thread.
#include "resp/integers.h"

#include <charconv>

namespace weir::resp {
namespace {

using LeanStatus = IntegersReply::Status;

constexpr std::size_t kLineOfDigitsMax = 23;  // a kind, a sign, 19 digits, CRLF

// A cursor over lines such as `:12` and `*3`.
class Lines {
 public:
  explicit Lines(std::string_view input) : input_(input) {}

  std::size_t at() const { return at_; }

  // Reads the next line, which must begin with `kind`.
  LeanStatus read(char kind, std::int64_t& value) {
    if (at_ == input_.size()) return LeanStatus::need_more;
    if (input_[at_] != kind) return LeanStatus::other;
    const char* const begin = input_.data() + at_ + 1;
    const char* const end = input_.data() + input_.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (end - stop < 2) {
      const bool may_go_on = input_.size() - at_ < kLineOfDigitsMax && (stop == end || *stop == '\r' || stop == begin);
      return may_go_on ? LeanStatus::need_more : LeanStatus::other;
    }
    if (error != std::errc{} || stop[0] != '\r' || stop[1] != '\n' || !is_plain(begin, stop)) return LeanStatus::other;
    at_ = static_cast<std::size_t>(stop + 2 - input_.data());
    return LeanStatus::done;
  }
  bool is_next(char kind) const { return at_ < input_.size() && input_[at_] == kind; }

 private:
  // Each number has only one spelling, as in the ReplyParser.
  static bool is_plain(const char* begin, const char* end) {
    const bool is_negative = *begin == '-';
    const char* const digits = begin + (is_negative ? 1 : 0);
    return *digits != '0' || (end - digits == 1 && !is_negative);
  }

  std::string_view input_;
  std::size_t at_ = 0;
};

LeanStatus read_items(Lines& lines, bool may_nest, std::vector<std::int64_t>& integers) {
  std::int64_t count = 0;
  if (const LeanStatus status = lines.read('*', count); status != LeanStatus::done) return status;
  if (count < 0 || count > static_cast<std::int64_t>(kIntegersMax)) return LeanStatus::other;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t value = 0;
    const bool is_nested = may_nest && lines.is_next('*');
    const LeanStatus status = is_nested ? read_items(lines, false, integers) : lines.read(':', value);
    if (status != LeanStatus::done) return status;
    if (is_nested) continue;
    if (integers.size() == kIntegersMax) return LeanStatus::other;
    integers.push_back(value);
  }
  return LeanStatus::done;
}

}  // namespace

IntegersReply read_integers(std::string_view input, std::vector<std::int64_t>& integers) {
  integers.clear();
  Lines lines(input);
  LeanStatus status = LeanStatus::done;
  if (lines.is_next(':')) {
    std::int64_t value = 0;
    status = lines.read(':', value);
    if (status == LeanStatus::done) integers.push_back(value);
  } else {
    status = read_items(lines, true, integers);
  }
  return {status, status == LeanStatus::done ? lines.at() : 0};
}

}  // namespace weir::resp
