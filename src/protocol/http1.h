// HTTP/1.x requests on the wire: what a head says, where its body ends, and which of both are refused.
//
// Strict, since where a request ends must be beyond doubt, or a proxy in front may see another request than we do: no
// bare CR or LF, no folded lines, one Content-Length or `chunked` and nothing else, one Host. A head is read in place,
// without a copy. The answer to a part of the bytes is never another than to all of them. Pure; any thread. Tested by
// http1_test.cc and fuzz/http1_request.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/request.h"

namespace weir {

inline constexpr std::size_t kHttpHeaderMax = std::size_t{8} << 10;
inline constexpr std::size_t kHttpFieldsMax = 100;

// What a header may be, if nobody says otherwise.
struct HttpBounds {
  std::size_t header_max = kHttpHeaderMax;  // bytes of a head, a chunk's extension, a trailer
  std::size_t fields_max = kHttpFieldsMax;
};

enum class HttpBody : std::uint8_t { none, sized, chunked };
enum class HttpRead : std::uint8_t { done, need_more, refused };

struct HttpHead {
  std::string_view method, target;
  std::vector<Attribute> fields{};  // names as they were sent, values without blanks around them
  std::size_t size = 0;             // with the empty line behind it
  std::size_t body_size = 0;        // if it is sized
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
// A head from the first byte of `input` on; views of it. `head` is used again for its room.
HttpRead read_head(std::string_view input, HttpHead& head, HttpRefusal& refusal, const HttpBounds& bounds = {});

HttpRefusal body_too_large(std::size_t body_max);

// The value of the first field of this name, which is given in small letters; empty if there is none.
std::string_view field_of(const std::vector<Attribute>& fields, std::string_view name);

bool equals_ignoring_case(std::string_view text, std::string_view in_small_letters);

// Joins the chunks of a body, as they come.
class ChunkedBody {
 public:
  // Adds to `body` what has come of it, at most `body_max` bytes in all; `consumed` of `input` are done with.
  HttpRead read(std::string_view input, std::size_t body_max, std::string& body, std::size_t& consumed,
                HttpRefusal& refusal, std::size_t header_max = kHttpHeaderMax);

 private:
  enum class Expects : std::uint8_t { size, data, data_end, trailer };

  HttpRead read_size(std::string_view line, std::size_t body_max, std::size_t so_far, HttpRefusal& refusal);
  HttpRead read_trailer(std::string_view line, std::size_t header_max, HttpRefusal& refusal);

  Expects expects_ = Expects::size;
  std::size_t left_ = 0;  // of the chunk
  std::size_t trailer_bytes_ = 0;
};

}  // namespace weir
