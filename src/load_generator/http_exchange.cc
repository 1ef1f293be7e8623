// HTTP/1.1: counts the answers, which come in the order of the requests.
//
// 2xx means allowed, 429 denied, everything else is an error. Every `"allowed":false` in a body counts as one denied
// check of a batch; a 429 counts as at least one. Answers must have a Content-Length: chunked ones are not supported.
// See exchange.h. Tested by http_exchange_test.cc.
#include <algorithm>

#include "load_generator/exchange.h"
#include "net/http_call.h"

namespace weir::load_generator {
namespace {

constexpr std::size_t kHeadMax = 16'384;
constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr std::string_view kDenied = "\"allowed\":false";

// Counts a text's occurrences in bytes that arrive in pieces.
class Occurrences {
 public:
  explicit Occurrences(std::string_view wanted) : wanted_(wanted) {}

  std::uint64_t count(std::string_view bytes) {
    // An occurrence that began in an earlier piece ends within the next wanted_.size() - 1 bytes.
    const std::size_t kept = wanted_.size() - 1;
    tail_ += bytes.substr(0, kept);
    const std::uint64_t found = count_in(tail_) + count_in(bytes);
    if (bytes.size() > kept) tail_ = bytes.substr(bytes.size() - kept);
    tail_.erase(0, tail_.size() - std::min(tail_.size(), kept));
    return found;
  }
  void restart() { tail_.clear(); }

 private:
  std::uint64_t count_in(std::string_view bytes) const {
    std::uint64_t found = 0;
    for (std::size_t at = bytes.find(wanted_); at != bytes.npos; at = bytes.find(wanted_, at + 1)) ++found;
    return found;
  }

  std::string_view wanted_;
  std::string tail_;  // shorter than wanted_, so that nothing counts twice
};

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
    const auto parsed = net::parse_http_head(head.substr(0, end + 2));
    bytes.remove_prefix(end + kHeadEnd.size() - before);
    kept_.clear();
    if (!parsed) return fail(ErrorCode::invalid_argument, "the answer is not HTTP/1.1");
    return begin_body(*parsed, answers);
  }

  Result<void> begin_body(const net::HttpHead& head, Answers& answers) {
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

}  // namespace weir::load_generator
