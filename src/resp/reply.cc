// Parses replies. See reply.h; tested by reply_test.cc. One thread.
#include "resp/reply.h"

#include <charconv>

#include "resp/number.h"

namespace weir::resp {
namespace {

Status refuse(std::string& reason, std::string text) {
  reason = std::move(text);
  return Status::bad;
}

bool is_real(std::string_view text) {
  if (text == "inf" || text == "-inf" || text == "nan") return true;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc{} && end == text.data() + text.size();
}

bool is_big_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string unknown_type(char kind) {
  if (kind > ' ' && kind < '\x7f') return std::string("a reply cannot begin with '") + kind + "'";
  return "a reply cannot begin with byte " + std::to_string(static_cast<unsigned char>(kind));
}

std::string too_large() { return "the reply is larger than " + std::to_string(kReplyBytesMax) + " bytes"; }

}  // namespace

ParsedReply ReplyParser::parse(std::string_view input) {
  ParsedReply reply;
  while (true) {
    const std::size_t open_before = open_.size();
    Value value;
    const Status status = read_value(input, value, reply.reason);
    if (status == Status::need_more) {
      if (input.size() <= kReplyBytesMax) return reply;
      reply.reason = too_large();
    }
    if (status == Status::bad || status == Status::need_more) {
      reply.status = Status::bad;
      restart();
      return reply;
    }
    if (open_.size() > open_before) {
      if (open_.back().left > 0) continue;  // its items come first
      const bool is_attribute = open_.back().is_attribute;
      value = std::move(open_.back().value);
      open_.pop_back();
      if (is_attribute) continue;
    }
    if (!close_into_parent(value)) continue;
    reply.status = at_ <= kReplyBytesMax ? Status::done : Status::bad;
    reply.consumed = at_;
    if (reply.status == Status::bad) {
      reply.reason = too_large();
    } else {
      reply.value = std::move(value);
    }
    restart();
    return reply;
  }
}

// close_into_parent()
//
// Adds a finished value to its aggregate. If that completes the aggregate, it continues with the aggregate's parent.
// Returns true if the remaining value is the whole reply.
bool ReplyParser::close_into_parent(Value& value) {
  while (!open_.empty()) {
    Open& parent = open_.back();
    parent.value.items.push_back(std::move(value));
    if (--parent.left > 0) return false;
    const bool is_attribute = parent.is_attribute;
    value = std::move(parent.value);
    open_.pop_back();
    if (is_attribute) return false;  // the value that it describes follows
  }
  return true;
}

Status ReplyParser::read_line(std::string_view input, std::string_view& line) {
  const std::size_t end = input.find('\n', searched_ > at_ ? searched_ : at_);
  if (end == std::string_view::npos) {
    searched_ = input.size();
    return input.size() - at_ > kLineMax ? Status::bad : Status::need_more;
  }
  if (end - at_ > kLineMax || end == at_ || input[end - 1] != '\r') return Status::bad;
  line = input.substr(at_, end - 1 - at_);
  return Status::done;
}

// read_value()
//
// Reads one value, or the header of an aggregate, which it adds to open_.
Status ReplyParser::read_value(std::string_view input, Value& value, std::string& reason) {
  if (blob_kind_ != 0) return read_blob(input, value, reason);
  if (at_ == input.size()) return Status::need_more;
  const char kind = input[at_];
  if (std::string_view("+-:$*_#,(!=%~>|").find(kind) == std::string_view::npos) {
    return refuse(reason, unknown_type(kind));
  }
  std::string_view line;
  const Status found = read_line(input, line);
  if (found == Status::bad) return refuse(reason, "a line in the reply does not end in CRLF within 64 KiB");
  if (found == Status::need_more) return found;
  if (++values_ > kReplyValuesMax) return refuse(reason, "the reply has too many values");
  at_ += line.size() + 2;
  const std::string_view rest = line.substr(1);
  switch (kind) {
    case '+':
    case '-':
      value.type = kind == '+' ? Type::simple : Type::error;
      value.text = rest;
      return Status::done;
    case ':': {
      const auto integer = parse_integer(rest.starts_with('+') ? rest.substr(1) : rest);
      if (!integer) return refuse(reason, "the reply has an invalid integer");
      value.type = Type::integer;
      value.integer = *integer;
      return Status::done;
    }
    case '_':
      return rest.empty() ? Status::done : refuse(reason, "the reply has an invalid null");
    case '#':
      if (rest != "t" && rest != "f") return refuse(reason, "a boolean in the reply is neither t nor f");
      value.type = Type::boolean;
      value.integer = rest == "t" ? 1 : 0;
      return Status::done;
    case ',':
    case '(':
      if (!(kind == ',' ? is_real(rest) : is_big_number(rest))) {
        return refuse(reason, "the reply has an invalid number");
      }
      value.type = kind == ',' ? Type::real : Type::big_number;
      value.text = rest;
      return Status::done;
    case '*':
      if (rest == "-1") return Status::done;
      return begin_aggregate(Type::array, rest, false, reason);
    case '~':
      return begin_aggregate(Type::set, rest, false, reason);
    case '>':
      return begin_aggregate(Type::push, rest, false, reason);
    case '%':
    case '|':
      return begin_aggregate(Type::map, rest, kind == '|', reason);
    default:
      break;  // '$', '!' and '=': a length, then that many bytes
  }
  if (kind == '$' && rest == "-1") return Status::done;
  const auto size = parse_integer(rest);
  if (!size || *size < 0 || *size > static_cast<std::int64_t>(kReplyBytesMax)) {
    return refuse(reason, "a length in the reply is not between 0 and " + std::to_string(kReplyBytesMax));
  }
  blob_kind_ = kind;
  blob_bytes_ = static_cast<std::size_t>(*size);
  return read_blob(input, value, reason);
}

Status ReplyParser::begin_aggregate(Type type, std::string_view digits, bool is_attribute, std::string& reason) {
  const auto count = parse_integer(digits);
  if (!count || *count < 0 || *count > static_cast<std::int64_t>(kReplyValuesMax)) {
    return refuse(reason, "a count in the reply is not between 0 and " + std::to_string(kReplyValuesMax));
  }
  if (open_.size() == kReplyDepthMax) return refuse(reason, "the reply is nested too deeply");
  Open aggregate;
  aggregate.value.type = type;
  aggregate.left = static_cast<std::size_t>(*count) * (type == Type::map ? 2 : 1);
  aggregate.is_attribute = is_attribute;
  open_.push_back(std::move(aggregate));
  return Status::done;
}

Status ReplyParser::read_blob(std::string_view input, Value& value, std::string& reason) {
  const std::size_t end = at_ + blob_bytes_;
  if (input.size() < end + 2) return Status::need_more;
  if (input.substr(end, 2) != "\r\n") return refuse(reason, "a string in the reply does not end in CRLF");
  std::string_view bytes = input.substr(at_, blob_bytes_);
  if (blob_kind_ == '=') {
    if (bytes.size() < 4 || bytes[3] != ':') return refuse(reason, "a verbatim string in the reply has no format");
    bytes.remove_prefix(4);
  }
  value.type = blob_kind_ == '!' ? Type::error : Type::bulk;
  value.text = bytes;
  at_ = end + 2;
  blob_kind_ = 0;
  return Status::done;
}

void ReplyParser::restart() {
  at_ = searched_ = values_ = blob_bytes_ = 0;
  blob_kind_ = 0;
  open_.clear();
}

}  // namespace weir::resp
