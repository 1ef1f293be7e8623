// Writes JSON member by member, and places the commas.
//
//   JsonWriter json(out);
//   json.begin_object();
//   json.text("name", name);
//   json.end_object();
//
// For responses outside the hot path, where an extra allocation does not matter. Pure; any thread may call it. Tested
// by json_writer_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_text.h"

namespace weir::protocol {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  // Without a name: the outermost object, or an element of an array.
  void begin_object() { separate(), open('{'); }
  void begin_object(std::string_view name) { named(name), open('{'); }
  void end_object() { close('}'); }
  void begin_array(std::string_view name) { named(name), open('['); }
  void end_array() { close(']'); }

  void text(std::string_view name, std::string_view value) { named(name), base::append_json_text(out_, value); }
  void number(std::string_view name, std::uint64_t value) { raw(name, std::to_string(value)); }
  void flag(std::string_view name, bool value) { raw(name, value ? "true" : "false"); }
  void null(std::string_view name) { raw(name, "null"); }
  // Writes a value that is JSON already.
  void raw(std::string_view name, std::string_view value) { named(name), out_.append(value); }

  void texts(std::string_view name, const std::vector<std::string>& values) {
    begin_array(name);
    for (const std::string& value : values) {
      separate();
      base::append_json_text(out_, value);
    }
    end_array();
  }

 private:
  void separate() {
    if (!is_first_) out_ += ',';
    is_first_ = false;
  }
  void named(std::string_view name) {
    separate();
    base::append_json_text(out_, name);
    out_ += ':';
  }
  void open(char bracket) {
    out_ += bracket;
    is_first_ = true;
  }
  void close(char bracket) {
    out_ += bracket;
    is_first_ = false;
  }

  std::string& out_;
  bool is_first_ = true;
};

}  // namespace weir::protocol
