// Parses the requests of a Redis client: arrays of bulk strings, or one line of words ("inline").
//
// The caller keeps the bytes and passes everything that is not consumed yet, each time from the same first byte. The
// parser remembers how far it has searched, so it scans a large request that arrives in small pieces only once. A
// complete request, as nearly all are, is parsed in one pass without allocation. Edge behaviour and error texts are
// those of Redis 7.0; the bounds are tighter. No I/O, no clock. One parser per connection, used by one thread. Tested
// by request_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::resp {

inline constexpr std::size_t kArgsMax = 64;
inline constexpr std::size_t kBulkMax = std::size_t{1} << 20;
inline constexpr std::size_t kLineMax = std::size_t{64} << 10;

// The default bounds of a request.
struct RequestBounds {
  std::size_t args_max = kArgsMax;
  std::size_t bulk_max = kBulkMax;
  std::size_t line_max = kLineMax;

  std::size_t request_max() const { return bulk_max + line_max; }
};

// For a client that has not authenticated yet, as in Redis.
inline constexpr std::size_t kStrangerArgsMax = 10;
inline constexpr std::size_t kStrangerBulkMax = 16'384;

enum class Status : std::uint8_t { done, need_more, bad };
enum class Trust : std::uint8_t { stranger, known };

// The result of one parse() call. `args` point into the input or into the parser, and are valid until the next call
// or until the input moves. An empty line and `*0` are done without args: they request nothing.
struct ParsedRequest {
  Status status = Status::need_more;
  std::size_t consumed = 0;  // done only
  std::span<const std::string_view> args;
  bool is_inline = false;     // then the args point into the parser
  bool is_too_large = false;  // bad only: it exceeds a bound but is not malformed
  std::string_view reason;    // bad only: text of the error reply without `ERR`; points into the parser
};

class RequestParser {
 public:
  explicit RequestParser(const RequestBounds& bounds = {}) : bounds_(bounds) {}

  ParsedRequest parse(std::string_view input) {
    if (expect_ == Expect::request && searched_ == 0 && parse_whole(input)) {
      return {.status = Status::done, .consumed = at_whole_, .args = {args_.data(), count_}};
    }
    return parse_slowly(input);
  }

  // Chooses the bounds of the requests from the next one on.
  void set_trust(Trust trust) { trust_ = trust; }

 private:
  struct Part {
    std::size_t begin;
    std::size_t size;
  };
  enum class Expect : std::uint8_t { request, bulk_header, bulk_bytes };

  bool parse_whole(std::string_view input);
  ParsedRequest parse_slowly(std::string_view input);
  ParsedRequest parse_inline(std::string_view input);
  ParsedRequest parse_count(std::string_view input);
  ParsedRequest parse_bulks(std::string_view input);
  Status find_line(std::string_view input, std::string_view& line);
  Status read_bulk_header(std::string_view input, std::string& reason, bool& is_too_large);
  ParsedRequest done(std::string_view base, std::size_t consumed);
  ParsedRequest bad(std::string reason);
  ParsedRequest too_large(std::string reason);
  void restart();
  std::size_t args_max() const { return within(bounds_.args_max, kStrangerArgsMax); }
  std::size_t bulk_max() const { return within(bounds_.bulk_max, kStrangerBulkMax); }
  std::size_t within(std::size_t most, std::size_t of_stranger) const {
    return trust_ == Trust::known || most < of_stranger ? most : of_stranger;
  }

  RequestBounds bounds_;
  Expect expect_ = Expect::request;
  Trust trust_ = Trust::known;
  std::size_t at_ = 0;          // the first byte that is not parsed yet
  std::size_t searched_ = 0;    // no line end before this one
  std::size_t args_left_ = 0;   // bulks still expected
  std::size_t bulk_bytes_ = 0;  // of the bulk that is being read
  std::vector<Part> parts_;
  std::vector<std::string_view> args_;  // the first count_ are in use; the memory is reused
  std::size_t count_ = 0;
  std::size_t at_whole_ = 0;  // the end of a request parsed in one pass
  std::string unquoted_;      // the words of an inline request, unquoted
  std::string reason_;
};

}  // namespace weir::resp
