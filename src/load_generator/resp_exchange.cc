// RESP: counts the replies, which come in the order of the commands.
//
// It copies nothing and has a fast path for complete lines of integers and arrays, since with a pipeline of 50 this
// is most of the generator's work. A reply counts as denied if it is an array that begins with the integer 1, as
// those of CL.THROTTLE do. See exchange.h. Tested by resp_exchange_test.cc.
#include <algorithm>
#include <utility>

#include "load_generator/exchange.h"

namespace weir::load_generator {
namespace {

class RespExchange final : public Exchange {
 public:
  explicit RespExchange(const Template& command) : command_(command) {}

  void ask(std::string& out, Keys& keys) override { command_.append_to(out, keys); }

  Result<void> read(std::string_view bytes, Answers& answers, std::string&) override {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at != end) {
      if (blob_left_ > 0) {
        at = skip_blob(at, end, answers);
      } else if (kind_ == 0) {
        at = read_numbers(at, end, answers);
        if (at == end) break;
        kind_ = *at++;
        number_ = 0;
        if (!is_known(kind_)) return fail(ErrorCode::invalid_argument, "the answer is not RESP");
      } else {
        at = read_line(at, end, answers);
      }
    }
    return {};
  }

 private:
  static bool is_known(char kind) { return std::string_view("*:$+-%~_#,(!=>").find(kind) != std::string_view::npos; }

  // Consumes all complete lines that contain only a number: integers and array headers.
  const char* read_numbers(const char* at, const char* end, Answers& answers) {
    while (at != end && (*at == ':' || *at == '*')) {
      const char* digit = at + 1;
      const bool is_negative = digit != end && *digit == '-';
      if (is_negative) ++digit;
      std::uint64_t number = 0;
      for (; digit != end && *digit >= '0' && *digit <= '9'; ++digit) {
        number = number * 10 + static_cast<std::uint64_t>(*digit - '0');
      }
      if (end - digit < 2 || digit[0] != '\r' || digit[1] != '\n') break;
      end_line(*at, number, is_negative, answers);
      at = digit + 2;
    }
    return at;
  }

  // Consumes to the end of the line or of the bytes. It accumulates the line's digits; a minus makes the number
  // negative at the end.
  const char* read_line(const char* at, const char* end, Answers& answers) {
    for (; at != end && *at != '\n'; ++at) {
      const char c = *at;
      if (c >= '0' && c <= '9') {
        number_ = number_ * 10 + static_cast<std::uint64_t>(c - '0');
      } else if (c == '-') {
        is_negative_ = true;
      }
      if (kind_ == '-' && c != '\r' && error_.size() < kErrorTextMax) error_ += c;
    }
    if (at == end) return at;
    const char kind = std::exchange(kind_, '\0');
    end_line(kind, number_, std::exchange(is_negative_, false), answers);
    return at + 1;
  }

  // A negative length means null.
  void end_line(char kind, std::uint64_t digits, bool is_negative, Answers& answers) {
    const std::uint64_t number = is_negative ? 0 : digits;
    if (position_ == 0) reply_kind_ = kind;
    if (position_ == 1 && kind == ':' && reply_kind_ == '*' && number == 1) ++answers.denied;
    ++position_;
    --left_;
    if (kind == '*' || kind == '~' || kind == '>') left_ += number;
    if (kind == '%') left_ += 2 * number;
    if ((kind == '$' || kind == '!' || kind == '=') && !is_negative) {
      blob_left_ = number + 2;  // including its line break
    } else if (left_ == 0) {
      end_reply(answers);
    }
  }

  const char* skip_blob(const char* at, const char* end, Answers& answers) {
    const auto here = std::min<std::uint64_t>(blob_left_, static_cast<std::uint64_t>(end - at));
    blob_left_ -= here;
    if (blob_left_ == 0 && left_ == 0) end_reply(answers);
    return at + here;
  }

  void end_reply(Answers& answers) {
    answers.answered.push_back(next_++);
    if (reply_kind_ == '-' || reply_kind_ == '!') answers.add_error(error_);
    error_.clear();
    left_ = 1;
    position_ = 0;
  }

  const Template& command_;
  std::uint64_t next_ = 0;  // the number of the request for the next reply

  char kind_ = 0;  // of the value on the current line
  std::uint64_t number_ = 0;
  bool is_negative_ = false;
  std::uint64_t blob_left_ = 0;

  std::uint64_t left_ = 1;      // values until the reply is complete
  std::uint64_t position_ = 0;  // index of the value in its reply
  char reply_kind_ = 0;
  std::string error_;
};

}  // namespace

std::unique_ptr<Exchange> make_resp_exchange(const Template& command) {
  return std::make_unique<RespExchange>(command);
}

}  // namespace weir::load_generator
