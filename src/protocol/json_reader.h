// Reads JSON (RFC 8259) from front to back, without a tree: whoever reads asks for what it expects next.
//
// Texts are views of the input where they have no escapes, else of `texts`, which must outlive them. Input that is no
// JSON makes the reader broken, and so it stays. Depth is bounded. Pure; any thread. Tested by json_reader_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

inline constexpr std::size_t kJsonDepthMax = 64;

using JsonTexts = std::deque<std::string>;

class JsonReader {
 public:
  JsonReader(std::string_view input, JsonTexts& texts) : input_(input), texts_(texts) {}

  // The first byte of what comes next, behind blanks; 0 at the end.
  char next();
  // Whether nothing but blanks is left.
  bool at_end() { return next() == 0 && at_ == input_.size(); }
  // If it comes next, goes behind it.
  bool take(char c);

  // Each is false if the reader is broken by it.
  bool read_text(std::string_view& text);
  bool read_number(std::string_view& text);
  bool skip_value();

  // next_member()
  //
  // Within an object, whose `{` was taken: goes to the value of the next member. False at the end, or if broken.
  bool next_member(std::string_view& name, bool& is_first);
  // The same of an array.
  bool next_element(bool& is_first);

  // What comes next, skipped, as an error message calls it: `the number 7`, `an array`. Of objects and arrays only the
  // first byte is looked at.
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
  bool read_escaped(std::size_t begin, std::string_view& text);
  bool read_escape(std::string& out);
  bool read_unicode(std::string& out);
  std::optional<std::uint32_t> read_hex();

  std::string_view input_;
  JsonTexts& texts_;
  std::size_t at_ = 0;
  std::string_view why_;
};

// The value of a whole number that int64 holds.
std::optional<std::int64_t> whole_number(std::string_view number);

}  // namespace weir
