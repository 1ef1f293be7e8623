// Ids with what they are bound to. See bound_id.h.
#include "server/bound_id.h"

#include <bit>
#include <cstddef>
#include <utility>

#include "weir/limiter.h"

namespace weir {
namespace {

bool is_one(std::string_view id) { return !id.empty() && id.size() <= kRequestIdBytesMax; }

void append_part(std::string& out, std::string_view part) {
  out.append(std::to_string(part.size())).push_back(':');
  out.append(part);
}

void append_hex(std::string& out, std::uint64_t word) {
  for (int shift = 60; shift >= 0; shift -= 4) out.push_back("0123456789abcdef"[word >> shift & 15]);
}

// An own first letter, so that no hash is the text of something else.
std::string fitted(std::string text) {
  if (text.size() <= kRequestIdBytesMax) return text;
  const auto hash = hash_128(text);
  std::string out = "h";
  append_hex(out, hash[0]);
  append_hex(out, hash[1]);
  return out;
}

struct Sip {
  std::uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  std::uint64_t finish() {
    rounds(4);
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

// Up to eight bytes, the first one lowest.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

std::array<std::uint64_t, 2> hash_128(std::string_view text) {
  constexpr std::uint64_t kFirst = 0x0706050403020100u, kSecond = 0x0f0e0d0c0b0a0908u;
  Sip sip{kFirst ^ 0x736f6d6570736575u, kSecond ^ 0x646f72616e646f6du ^ 0xee, kFirst ^ 0x6c7967656e657261u,
          kSecond ^ 0x7465646279746573u};
  const std::uint64_t size = text.size();
  while (text.size() >= 8) {
    sip.take(word_of(text.substr(0, 8)));
    text.remove_prefix(8);
  }
  sip.take(word_of(text) | size << 56);
  sip.v2 ^= 0xee;
  const std::uint64_t low = sip.finish();
  sip.v1 ^= 0xdd;
  return {low, sip.finish()};
}

std::string bound_id(std::string_view id, std::string_view key, Algorithm algorithm) {
  if (!is_one(id)) return std::string(id);
  std::string text = "k";
  append_part(text, id);
  append_part(text, std::to_string(static_cast<int>(algorithm)));
  append_part(text, key);
  return fitted(std::move(text));
}

std::string bound_id(std::string_view id, const Request& request) {
  if (!is_one(id)) return std::string(id);
  std::string text = "r";
  append_part(text, id);
  for (const std::string_view part : {request.user, request.api_key, request.ip, request.tenant, request.plan,
                                      request.method, request.host, request.path}) {
    append_part(text, part);
  }
  for (const Attribute& entry : request.entries) {
    append_part(text, entry.name);
    append_part(text, entry.value);
  }
  return fitted(std::move(text));
}

}  // namespace weir
