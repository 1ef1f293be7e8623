// Reads JSON (RFC 8259) from front to back without building a tree: the caller asks for what it expects next.
//
// A text without escapes is a view of the input. Other texts are stored in `texts`, which must outlive them.
// After malformed input the reader is broken, and is_broken() stays true. Depth is bounded. Pure; any thread may use
// it. Tested by json_reader_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir::protocol {

inline constexpr std::size_t kJsonDepthMax = 64;

using JsonTexts = std::deque<std::string>;

class JsonReader {
 public:
  JsonReader(std::string_view input, JsonTexts& texts) : input_(input), texts_(texts) {}

  // Skips blanks and returns the next byte without consuming it; 0 at the end.
  char next();
  // Whether only blanks are left.
  bool at_end() { return next() == 0 && at_ == input_.size(); }
  // Consumes `c` if it comes next, and returns whether it did.
  bool take(char c);

  // Each returns false if the input is malformed.
  bool read_text(std::string_view& text);
  bool read_number(std::string_view& text);
  bool skip_value();

  // next_member()
  //
  // Call within an object, after its `{`. Moves to the value of the next member. Returns false at the end or on an
  // error.
  bool next_member(std::string_view& name, bool& is_first);
  // The same for an array.
  bool next_element(bool& is_first);

  // Skips the next value, and describes it for an error message: `the number 7`, `an array`. For objects and arrays
  // it reads only the first byte.
  std::string found();

  bool is_broken() const { return !why_.empty(); }
  std::string_view why() const { return why_; }  // a literal
  std::size_t at() const { return at_; }
  void go_back(std::size_t at) { at_ = at; }

 private:
  bool broken(std::string_view why);
  bool skip_word(std::string_view word);
  bool skip_digits();
  bool skip_plain();
  bool read_escape(std::string& out);
  bool read_unicode(std::string& out);
  std::optional<std::uint32_t> read_hex();

  std::string_view input_;
  JsonTexts& texts_;
  std::size_t at_ = 0;
  std::string_view why_;
};

// JSON as a tree, for code that reads responses of our own server. Requests are parsed without a tree.
//
//   auto answer = weir::protocol::parse_json(body);
//   if (answer) use(answer->at("config").at("file").text);
//
// A missing member reads as null, whose text is empty and whose number is 0.
struct JsonValue {
  enum class Kind : std::uint8_t { null, boolean, number, text, array, object };

  Kind kind = Kind::null;
  bool is_true = false;
  std::string text{};  // of a text; of a number, its digits as sent
  std::vector<JsonValue> items{};
  std::vector<std::pair<std::string, JsonValue>> members{};

  // Returns the first member of that name.
  const JsonValue& at(std::string_view name) const;
  double number() const;
  std::int64_t whole() const;
};

Result<JsonValue> parse_json(std::string_view text);

}  // namespace weir::protocol
