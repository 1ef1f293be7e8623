// Writes three kinds of request, and finds grpc-status. See header_block.h.
#include "load_generator/header_block.h"

#include <cstdint>
#include <optional>

namespace weir::load_generator {
namespace {

// Indices of the static table.
constexpr unsigned kAuthority = 1, kMethodPost = 3, kPath = 4, kSchemeHttp = 6, kContentType = 31, kStaticEnd = 62;

constexpr std::string_view kStatusName = "grpc-status";
constexpr std::string_view kStatusNameHuffman = "\x9a\xca\xc8\xb2\x12\x34\xda\x8f";

void append_integer(std::string& out, unsigned first_byte, unsigned prefix_bits, std::size_t value) {
  const std::size_t most = (std::size_t{1} << prefix_bits) - 1;
  if (value < most) {
    out += static_cast<char>(first_byte | value);
    return;
  }
  out += static_cast<char>(first_byte | most);
  for (value -= most; value >= 128; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  out += static_cast<char>(value);
}

void append_string(std::string& out, std::string_view text) {
  append_integer(out, 0, 7, text.size());
  out += text;
}

// How a literal field is written: with or without adding it to the peer's table.
enum class Kind : unsigned { indexed = 0x40, not_indexed = 0x00 };

void append_literal(std::string& out, Kind kind, unsigned name, std::string_view value) {
  append_integer(out, static_cast<unsigned>(kind), kind == Kind::indexed ? 6 : 4, name);
  append_string(out, value);
}

void append_indexed(std::string& out, unsigned index) { append_integer(out, 0x80, 7, index); }

std::string literal_block(const CallFields& fields, Kind kind) {
  std::string block;
  append_indexed(block, kMethodPost);
  append_indexed(block, kSchemeHttp);
  append_literal(block, kind, kPath, fields.path);
  append_literal(block, kind, kAuthority, fields.authority);
  append_literal(block, kind, kContentType, "application/grpc");
  append_integer(block, static_cast<unsigned>(kind), kind == Kind::indexed ? 6 : 4, 0);
  append_string(block, "te");
  append_string(block, "trailers");
  return block;
}

// A bounds-checked reader of a block.
class Reader {
 public:
  explicit Reader(std::string_view block) : rest_(block) {}

  bool is_done() const { return rest_.empty(); }
  unsigned peek() const { return static_cast<unsigned char>(rest_.front()); }

  std::optional<std::uint64_t> integer(unsigned prefix_bits) {
    const std::uint64_t most = (1U << prefix_bits) - 1;
    std::uint64_t value = take() & most;
    if (value < most) return value;
    for (unsigned shift = 0; shift < 28; shift += 7) {
      if (rest_.empty()) return {};
      const std::uint64_t byte = take();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return {};
  }

  struct Text {
    std::string_view bytes;
    bool is_huffman;
  };
  std::optional<Text> text() {
    if (rest_.empty()) return {};
    const bool is_huffman = (peek() & 0x80) != 0;
    const auto size = integer(7);
    if (!size || *size > rest_.size()) return {};
    const Text text{rest_.substr(0, *size), is_huffman};
    rest_.remove_prefix(*size);
    return text;
  }

 private:
  std::uint64_t take() {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }

  std::string_view rest_;
};

// In the Huffman code, digits below '3' have 5 bits, the others 6; the rest of a byte is ones. A status has one or
// two digits.
std::string digits_of(const Reader::Text& text) {
  if (!text.is_huffman) return std::string(text.bytes.substr(0, 2));
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    bits = bits << 8 | (i < text.bytes.size() ? static_cast<unsigned char>(text.bytes[i]) : 0xffU);
  }
  std::string digits;
  unsigned left = 16;
  while (digits.size() < 2 && left >= 6) {
    const unsigned six = bits >> (left - 6) & 0x3f;
    if (six >> 1 <= 2) {  // 00000, 00001, 00010: 0, 1, 2
      digits += static_cast<char>('0' + (six >> 1));
      left -= 5;
    } else if (six >= 0x19 && six <= 0x1f) {  // 011001 to 011111: 3 to 9
      digits += static_cast<char>('3' + (six - 0x19));
      left -= 6;
    } else {
      break;
    }
  }
  return digits;
}

tl::unexpected<Error> bad_block() {
  return fail(ErrorCode::invalid_argument, "the server sent a header that is not HPACK for an empty table");
}

}  // namespace

std::string first_header_block(const CallFields& fields) { return literal_block(fields, Kind::indexed); }

// The newest entry has the lowest index.
std::string next_header_block() {
  std::string block;
  append_indexed(block, kMethodPost);
  append_indexed(block, kSchemeHttp);
  for (const unsigned index : {kStaticEnd + 3, kStaticEnd + 2, kStaticEnd + 1, kStaticEnd}) {
    append_indexed(block, index);
  }
  return block;
}

std::string plain_header_block(const CallFields& fields) { return literal_block(fields, Kind::not_indexed); }

Result<std::string> grpc_status(std::string_view block) {
  Reader reader(block);
  std::string status;
  while (!reader.is_done()) {
    const unsigned first = reader.peek();
    if ((first & 0x80) != 0) {  // an indexed field
      const auto index = reader.integer(7);
      if (!index || *index >= kStaticEnd) return bad_block();
    } else if ((first & 0xe0) == 0x20) {  // a table size update
      if (!reader.integer(5)) return bad_block();
    } else {  // a literal, with or without indexing
      const auto name_index = reader.integer((first & 0x40) != 0 ? 6 : 4);
      if (!name_index || *name_index >= kStaticEnd) return bad_block();
      bool is_status = false;
      if (*name_index == 0) {
        const auto name = reader.text();
        if (!name) return bad_block();
        is_status = name->bytes == (name->is_huffman ? kStatusNameHuffman : kStatusName);
      }
      const auto value = reader.text();
      if (!value) return bad_block();
      if (is_status) status = digits_of(*value);
    }
  }
  return status;
}

}  // namespace weir::load_generator
