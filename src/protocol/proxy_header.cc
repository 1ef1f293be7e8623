// Parses both versions of the header, as HAProxy's specification defines them. See proxy_header.h.
#include "protocol/proxy_header.h"

#include <algorithm>
#include <array>

#include "base/big_endian.h"
#include "base/text.h"

namespace weir::protocol {
namespace {

using namespace std::string_view_literals;
using State = ProxyRead::State;

constexpr std::string_view kV1 = "PROXY "sv;
constexpr std::string_view kV2 = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::size_t kV1Min = "PROXY UNKNOWN\r\n"sv.size();
constexpr std::size_t kV2Fixed = 16;
constexpr ProxyRead kBad{};

ProxyRead more(std::size_t bytes) { return {.state = State::more, .more = bytes}; }

bool is_beginning(std::string_view bytes, std::string_view of) {
  return bytes.substr(0, of.size()) == of.substr(0, bytes.size());
}

// --- version 1, a line -----------------------------------------------------------------------------------------------

std::optional<std::string_view> take_word(std::string_view& line) {
  const std::size_t end = line.find(' ');
  if (end == line.npos) return std::nullopt;
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end + 1);
  return word;
}

bool is_port(std::string_view text) {
  return base::to_number<std::uint16_t>(text) && (text.size() == 1 || text[0] != '0');
}

// The notation decides the family here: `TCP6 ::ffff:192.0.2.1` is valid.
std::optional<base::IpAddress> address_of(std::optional<std::string_view> text, bool is_v6) {
  if (!text || (text->find(':') != text->npos) != is_v6) return std::nullopt;
  return base::parse_ip(*text);
}

// `line` does not include its CR LF.
ProxyRead read_line(std::string_view line) {
  ProxyRead read{.state = State::done, .size = line.size() + 2};
  line.remove_prefix(kV1.size());
  if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return read;
  const auto family = take_word(line);
  if (family != "TCP4" && family != "TCP6") return kBad;
  const bool is_v6 = family == "TCP6";
  read.source = address_of(take_word(line), is_v6);
  const auto destination = address_of(take_word(line), is_v6);
  const auto port = take_word(line);
  return read.source && destination && port && is_port(*port) && is_port(line) ? read : kBad;
}

ProxyRead read_v1(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kProxyV1Max);
  const std::size_t end = head.find_first_of("\r\n"sv);
  const auto is_plain = [](char c) { return c >= ' ' && c < '\x7f'; };
  if (!std::ranges::all_of(head.substr(0, end), is_plain)) return kBad;
  if (end == head.npos || end + 1 == head.size()) {
    if (head.size() >= kProxyV1Max || (end != head.npos && head[end] != '\r')) return kBad;
    return more(head.size() < kV1Min ? kV1Min - head.size() : 1);
  }
  return head.substr(end, 2) == "\r\n" ? read_line(head.substr(0, end)) : kBad;
}

// --- version 2, binary -----------------------------------------------------------------------------------------------

std::uint8_t byte_at(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

std::size_t two_bytes_at(std::string_view bytes, std::size_t at) { return base::big_endian(bytes.substr(at, 2)); }

base::IpAddress v4_at(std::string_view bytes, std::size_t at) {
  base::IpAddress address;
  address.bytes[10] = address.bytes[11] = 0xff;
  std::ranges::copy(bytes.substr(at, 4), address.bytes.begin() + 12);
  return address;
}

base::IpAddress v6_at(std::string_view bytes, std::size_t at) {
  base::IpAddress address;
  std::ranges::copy(bytes.substr(at, address.bytes.size()), address.bytes.begin());
  return address;
}

// Computes the CRC-32C of the header, with zeros for the four bytes at `hole`.
std::uint32_t checksum(std::string_view header, std::size_t hole) {
  std::uint32_t sum = ~std::uint32_t{0};
  for (std::size_t i = 0; i < header.size(); ++i) {
    sum ^= i >= hole && i < hole + 4 ? 0U : byte_at(header, i);
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? 0x82F63B78U : 0);
  }
  return ~sum;
}

// Whether the fields after the addresses are well-formed: each has a type and a length, and is complete. Checks a
// checksum.
bool are_additions_right(std::string_view header, std::size_t at) {
  constexpr std::uint8_t kChecksum = 3;
  while (at < header.size()) {
    if (header.size() - at < 3) return false;
    const std::size_t size = two_bytes_at(header, at + 1), value = at + 3;
    if (header.size() - value < size) return false;
    if (byte_at(header, at) == kChecksum) {
      if (size != 4) return false;
      const std::size_t given = base::big_endian(header.substr(value, 4));
      if (given != checksum(header, value)) return false;
    }
    at = value + size;
  }
  return true;
}

ProxyRead read_v2(std::string_view bytes) {
  if (bytes.size() < kV2Fixed) return more(kV2Fixed - bytes.size());
  const std::uint8_t command = byte_at(bytes, 12), family = byte_at(bytes, 13) >> 4,
                     transport = byte_at(bytes, 13) & 15;
  constexpr std::uint8_t kLocal = 0x20, kProxy = 0x21;
  if ((command != kLocal && command != kProxy) || family > 3 || transport > 2) return kBad;
  const std::size_t size = kV2Fixed + two_bytes_at(bytes, 14);
  constexpr std::array<std::size_t, 4> kAddresses = {0, 12, 36, 216};  // unknown, IPv4, IPv6, unix
  if (size > kProxyHeaderMax) return kBad;
  if (command == kProxy && size < kV2Fixed + kAddresses[family]) return kBad;
  if (bytes.size() < size) return more(size - bytes.size());
  ProxyRead read{.state = State::done, .size = size};
  if (command == kLocal) return read;
  if (!are_additions_right(bytes.substr(0, size), kV2Fixed + kAddresses[family])) return kBad;
  constexpr std::uint8_t kStream = 1;
  if (transport != kStream) return read;
  if (family == 1) read.source = v4_at(bytes, kV2Fixed);
  if (family == 2) read.source = v6_at(bytes, kV2Fixed);
  return read;
}

}  // namespace

ProxyRead read_proxy_header(std::string_view bytes) {
  if (bytes.empty()) return more(std::min(kV1Min, kV2Fixed));
  if (is_beginning(bytes, kV1)) return read_v1(bytes);
  if (is_beginning(bytes, kV2)) return read_v2(bytes);
  return kBad;
}

}  // namespace weir::protocol
