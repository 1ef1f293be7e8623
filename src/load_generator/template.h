// A prepared request with holes for the keys: writing one is a copy and some digits.
//
// The text contains {key}, a name of about forty bytes, or {n}, only its eleven digits. All holes of one piece get
// the same key. Every piece draws its own, so that a batch has one piece per check. Immutable once made; any thread.
// Tested by template_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "load_generator/keys.h"

namespace weir::load_generator {

class Template {
 public:
  Template() = default;
  explicit Template(std::string_view piece) { add(piece); }

  Template& add(std::string_view piece);
  void append_to(std::string& out, Keys& keys) const;

  // With zeros for the keys; it has the size of every request.
  const std::string& bytes() const { return bytes_; }

 private:
  struct Hole {
    std::size_t at;
    bool is_first_of_piece;
  };

  std::string bytes_;
  std::vector<Hole> holes_;
};

// The number of bytes of the text with its keys filled in.
std::size_t filled_size(std::string_view piece);

// A RESP command from words separated by blanks; a quoted word may contain blanks.
Template resp_template(std::string_view command);

struct HttpRequestText {
  std::string method = "GET";
  std::string host;
  std::string path = "/";
  std::vector<std::string> headers;  // "Name: value"
  std::string body;                  // or one check, for a batch
  std::size_t batch = 0;             // checks per JSON array in "checks"; 0: the body as it is
};
Template http_template(const HttpRequestText& text);

}  // namespace weir::load_generator
