// A request made ahead, with holes where the keys go: sending one is a copy and some digits.
//
// Text is given with {key}, a name of about forty bytes, or {n}, its eleven digits alone. All holes of one piece get
// the same key; every piece draws its own, so that a batch is one piece for each check. Immutable once made; any
// thread. Tested by template_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "load/keys.h"

namespace weir::load {

class Template {
 public:
  Template() = default;
  explicit Template(std::string_view piece) { add(piece); }

  Template& add(std::string_view piece);
  void append_to(std::string& out, Keys& keys) const;

  // With zeros for the keys: its size is that of every request.
  const std::string& bytes() const { return bytes_; }
  bool has_keys() const { return !holes_.empty(); }

 private:
  struct Hole {
    std::size_t at;
    bool is_first_of_piece;
  };

  std::string bytes_;
  std::vector<Hole> holes_;
};

// How many bytes the text has when its keys are written.
std::size_t filled_size(std::string_view piece);

// The command of a RESP client, from words with blanks between; a word in quotes may have blanks in it.
Template resp_template(std::string_view command);

struct HttpRequestText {
  std::string method = "GET";
  std::string host;
  std::string path = "/";
  std::vector<std::string> headers;  // "Name: value"
  std::string body;                  // of one check
  std::size_t batch = 0;             // so many of them as a JSON array in "checks"; 0: the body as it is
};
Template http_template(const HttpRequestText& text);

}  // namespace weir::load
