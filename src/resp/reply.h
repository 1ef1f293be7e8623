// Parses the replies of a RESP server: every RESP2 type, and RESP3's except streamed ones.
//
// Clients and tests use it. Like RequestParser, it receives all bytes that are not consumed yet, each time from the
// same first byte, and remembers how far it has parsed. Depth, number of values and size are bounded: a broken or
// hostile server costs a connection, not the process. It does no I/O. One thread. Tested by reply_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "resp/request.h"

namespace weir::resp {

inline constexpr std::size_t kReplyDepthMax = 16;
inline constexpr std::size_t kReplyValuesMax = 65'536;
inline constexpr std::size_t kReplyBytesMax = std::size_t{8} << 20;

enum class Type : std::uint8_t {
  simple,
  error,  // also RESP3's blob error
  integer,
  bulk,  // also RESP3's verbatim text, without its "txt:"
  null,
  boolean,
  real,        // as text: no code here computes with it
  big_number,  // as text
  array,
  map,  // items are key, value, key, value
  set,
  push,
};

struct Value {
  Type type = Type::null;
  std::int64_t integer = 0;  // integer; boolean: 0 or 1
  std::string text;
  std::vector<Value> items;

  friend bool operator==(const Value&, const Value&) = default;
};

struct ParsedReply {
  Status status = Status::need_more;
  std::size_t consumed = 0;
  Value value;
  std::string reason;
};

class ReplyParser {
 public:
  ParsedReply parse(std::string_view input);

 private:
  struct Open {
    Value value;
    std::size_t left = 0;       // values still expected
    bool is_attribute = false;  // will be dropped
  };

  Status read_line(std::string_view input, std::string_view& line);
  Status read_value(std::string_view input, Value& value, std::string& reason);
  Status begin_aggregate(Type type, std::string_view digits, bool is_attribute, std::string& reason);
  Status read_blob(std::string_view input, Value& value, std::string& reason);
  bool close_into_parent(Value& value);
  void restart();

  std::size_t at_ = 0;
  std::size_t searched_ = 0;
  std::size_t values_ = 0;
  std::size_t blob_bytes_ = 0;
  char blob_kind_ = 0;  // '$', '!' or '=' while waiting for its bytes
  std::vector<Open> open_;
};

}  // namespace weir::resp
