// HTTP/1.1: counts the answers, which come in the order of the requests.
//
// 2xx means allowed, 429 denied, everything else is an error. Every `"allowed":false` in a body counts as one denied
// check of a batch; a 429 counts as at least one. Answers must have a Content-Length: chunked ones are not supported.
// See exchange.h. Tested by http_exchange_test.cc.
#include <algorithm>
#include <charconv>
#include <optional>

#include "base/nearest.h"
#include "load_generator/exchange.h"

namespace weir::load {
namespace {

constexpr std::size_t kHeadMax = 16'384;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kDenied = "\"allowed\":false";

// Counts a text's occurrences in bytes that arrive in pieces.
class Occurrences {
 public:
  explicit Occurrences(std::string_view wanted) : wanted_(wanted) {}

  std::uint64_t count(std::string_view bytes) {
    std::uint64_t found = 0;
    // An occurrence that began in an earlier piece ends within the next wanted_.size() - 1 bytes.
    tail_ += bytes.substr(0, wanted_.size() - 1);
    found += count_in(tail_);
    if (bytes.size() < wanted_.size()) {
      keep_end_of(std::string(tail_));
      return found;
    }
    found += count_in(bytes);
    keep_end_of(bytes);
    return found;
  }
  void restart() { tail_.clear(); }

 private:
  std::uint64_t count_in(std::string_view bytes) const {
    std::uint64_t found = 0;
    for (std::size_t at = bytes.find(wanted_); at != bytes.npos; at = bytes.find(wanted_, at + 1)) ++found;
    return found;
  }
  void keep_end_of(std::string_view bytes) {
    tail_ = bytes.substr(bytes.size() - std::min(bytes.size(), wanted_.size() - 1));
  }

  std::string_view wanted_;
  std::string tail_;  // shorter than wanted_, so that nothing counts twice
};

struct Head {
  int status = 0;
  std::optional<std::uint64_t> length;
};

bool is_named(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         std::ranges::equal(line.substr(0, name.size()), name, {}, [](char c) { return lower(c); });
}

std::optional<Head> parse_head(std::string_view text) {
  Head head;
  if (text.size() < 12 || !text.starts_with("HTTP/1.")) return {};
  if (std::from_chars(text.data() + 9, text.data() + 12, head.status).ec != std::errc{}) return {};
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
    constexpr std::string_view kName = "content-length";
    if (!is_named(text, kName)) continue;
    std::string_view value = text.substr(kName.size() + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    std::uint64_t length = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), length).ec != std::errc{}) return {};
    head.length = length;
  }
  if (head.status == 204 || head.status == 304 || head.status < 200) head.length = 0;
  return head;
}

class HttpExchange final : public Exchange {
 public:
  explicit HttpExchange(const Template& request) : request_(request) {}

  void ask(std::string& out, Keys& keys) override { request_.append_to(out, keys); }

  Result<void> read(std::string_view bytes, Answers& answers, std::string&) override {
    while (!bytes.empty()) {
      if (body_left_ > 0) {
        read_body(bytes, answers);
      } else if (auto taken = read_head(bytes, answers); !taken) {
        return taken;
      }
    }
    return {};
  }

 private:
  // A head that arrives complete, as most do, is not copied.
  Result<void> read_head(std::string_view& bytes, Answers& answers) {
    const std::size_t before = kept_.size();  // its bytes from earlier reads
    std::string_view head = bytes;
    if (before > 0) head = kept_ += bytes.substr(0, kHeadMax);
    const std::size_t end = head.find(kHeadEnd);
    const bool is_whole = end != head.npos;
    if (is_whole ? end > kHeadMax : head.size() >= kHeadMax + kHeadEnd.size()) {
      return fail(ErrorCode::out_of_range, "the server sent no HTTP answer, or a header of more than 16 KiB");
    }
    if (!is_whole) {
      if (before == 0) kept_ = bytes;
      bytes = {};
      return {};
    }
    const auto parsed = parse_head(head.substr(0, end + 2));
    bytes.remove_prefix(end + kHeadEnd.size() - before);
    kept_.clear();
    if (!parsed) return fail(ErrorCode::invalid_argument, "the answer is not HTTP/1.1");
    return begin_body(*parsed, answers);
  }

  Result<void> begin_body(const Head& head, Answers& answers) {
    if (head.status >= 100 && head.status < 200) return {};
    if (!head.length)
      return fail(ErrorCode::invalid_argument, "an answer has no Content-Length; chunked answers are not supported");
    status_ = head.status;
    body_left_ = *head.length;
    denied_in_body_ = 0;
    if (body_left_ == 0) end_answer(answers);
    return {};
  }

  void read_body(std::string_view& bytes, Answers& answers) {
    const std::size_t here = std::min<std::uint64_t>(body_left_, bytes.size());
    denied_in_body_ += denials_.count(bytes.substr(0, here));
    body_left_ -= here;
    bytes.remove_prefix(here);
    if (body_left_ == 0) end_answer(answers);
  }

  void end_answer(Answers& answers) {
    answers.answered.push_back(next_++);
    const bool is_yes = status_ >= 200 && status_ < 300;
    if (status_ == 429) denied_in_body_ = std::max<std::uint64_t>(denied_in_body_, 1);
    if (is_yes || status_ == 429) answers.denied += denied_in_body_;
    if (!is_yes && status_ != 429) answers.add_error("HTTP status " + std::to_string(status_));
    denials_.restart();
  }

  const Template& request_;
  std::uint64_t next_ = 0;
  std::string kept_;  // the beginning of an incomplete head
  int status_ = 0;
  std::uint64_t body_left_ = 0;
  std::uint64_t denied_in_body_ = 0;
  Occurrences denials_{kDenied};
};

}  // namespace

std::unique_ptr<Exchange> make_http_exchange(const Template& request) {
  return std::make_unique<HttpExchange>(request);
}

}  // namespace weir::load
