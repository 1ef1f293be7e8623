// Parses HTTP/1.x requests: the head, where the body ends, and which requests are refused.
//
// Parsing is strict. The end of a request must be unambiguous, or a proxy in front may see another request than we
// do. So there is no bare CR or LF, no folded line, one Content-Length or `chunked` and nothing else, and one Host. A
// head is read in place, without a copy. A result for a part of the bytes is never revised when more arrive. Pure;
// any thread may call it. Tested by http1_test.cc and fuzz/http1_request.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "weir/request.h"

namespace weir::protocol {

inline constexpr std::size_t kHttpHeaderMax = std::size_t{8} << 10;
inline constexpr std::size_t kHttpFieldsMax = 100;

// Bounds on a header, with their defaults.
struct HttpBounds {
  std::size_t header_max = kHttpHeaderMax;  // bytes of a head, a chunk extension or a trailer
  std::size_t fields_max = kHttpFieldsMax;
};

enum class HttpBody : std::uint8_t { none, sized, chunked };
enum class HttpRead : std::uint8_t { done, need_more, refused };

struct HttpHead {
  std::string_view method, target;
  std::vector<Attribute> fields{};  // names as sent, values without surrounding blanks
  std::size_t size = 0;             // including the empty line at its end
  std::size_t body_size = 0;        // if the body is sized
  HttpBody body = HttpBody::none;
  bool is_http10 = false;
  bool keeps_alive = true;
  bool expects_continue = false;
};

struct HttpRefusal {
  int status = 400;
  std::string_view title = "Bad request";
  std::string detail{};
};

// read_head()
//
// Parses a head from the first byte of `input`; `head` has views of it. Reuse `head` to avoid allocations.
HttpRead read_head(std::string_view input, HttpHead& head, HttpRefusal& refusal, const HttpBounds& bounds = {});

HttpRefusal body_too_large(std::size_t body_max);

// Returns the value of the first field of this name, which must be in lower case. Empty if there is none.
std::string_view field_of(const std::vector<Attribute>& fields, std::string_view name);

inline bool equals_ignoring_case(std::string_view text, std::string_view in_lower_case) {
  return std::equal(text.begin(), text.end(), in_lower_case.begin(), in_lower_case.end(),
                    [](char a, char b) { return base::lower(a) == b; });
}

// Decodes a chunked body as its bytes arrive.
class ChunkedBody {
 public:
  // Appends the received part to `body`, at most `body_max` bytes in total. `consumed` bytes of `input` are
  // processed.
  HttpRead read(std::string_view input, std::size_t body_max, std::string& body, std::size_t& consumed,
                HttpRefusal& refusal, std::size_t header_max = kHttpHeaderMax);

 private:
  enum class Expects : std::uint8_t { size, data, data_end, trailer };

  HttpRead read_size(std::string_view line, std::size_t body_max, std::size_t so_far, HttpRefusal& refusal);
  HttpRead read_trailer(std::string_view line, std::size_t header_max, HttpRefusal& refusal);

  Expects expects_ = Expects::size;
  std::size_t left_ = 0;  // remaining bytes of the chunk
  std::size_t trailer_bytes_ = 0;
};

}  // namespace weir::protocol
