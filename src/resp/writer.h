// Writes RESP: the replies of a server (RESP2 or RESP3) and the commands of a client.
//
// A bulk may contain any untrusted bytes. In a `+` or `-` line, where a line break would begin a second reply,
// control characters are replaced and the length is cut. It appends to a string that the caller owns and does no I/O.
// One thread. Tested by writer_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::resp {

inline constexpr std::size_t kLineReplyMax = 1024;

enum class Protocol : std::uint8_t { resp2 = 2, resp3 = 3 };

class Writer {
 public:
  explicit Writer(std::string& out, Protocol protocol = Protocol::resp2) : out_(out), protocol_(protocol) {}

  Protocol protocol() const { return protocol_; }
  void set_protocol(Protocol protocol) { protocol_ = protocol; }

  void simple(std::string_view text);
  // The first word is the error's kind, by convention in capitals: "ERR unknown command".
  void error(std::string_view text);
  void integer(std::int64_t value);
  void bulk(std::string_view bytes);
  // Text for people: verbatim in RESP3, a bulk in RESP2.
  void verbatim(std::string_view text);
  void null();
  // The caller then writes `count` values, or `count` pairs of key and value.
  void array(std::size_t count);
  void map(std::size_t count);
  // Appends values that another writer has written.
  void raw(std::string_view values) { out_.append(values); }
  // An array of exactly five integers, written at once.
  void integers(const std::array<std::int64_t, 5>& values);

 private:
  void line(char kind, std::string_view text);
  void header(char kind, std::int64_t value);

  std::string& out_;
  Protocol protocol_;
};

// A client's command, as an array of bulk strings.
void append_command(std::string& out, std::span<const std::string_view> args);

}  // namespace weir::resp
