// Fuzzes the client's address: whatever peer, list of trusted proxies and headers come, the answer is the peer, or an
// address that stands in a header; and the parts that it is made of agree with plainer ones.
//
// The data are lines: the peer, then how to walk (x, f or s, and the hops), then the trusted ranges between blanks;
// each other line is a header, NAME:VALUE.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/client_ip.h"

namespace {

using namespace weir;

std::string_view take_until(std::string_view& rest, char end) {
  const std::string_view taken = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(taken.size() + 1, rest.size()));
  return taken;
}

bool contains_bit_by_bit(const IpRange& range, const IpAddress& address) {
  if (range.is_v4() != address.is_v4()) return false;
  for (unsigned i = 0; i < range.bits; ++i) {
    if (((range.base.bytes[i / 8] ^ address.bytes[i / 8]) >> (7 - i % 8) & 1) != 0) return false;
  }
  return true;
}

void check_address(const IpAddress& address) {
  WEIR_ASSERT(parse_ip(to_string(address)) == address);
  WEIR_ASSERT(parse_node(to_string(address)) == address);
  WEIR_ASSERT(parse_node('[' + to_string(address) + "]:80") ==
              (address.is_v4() ? std::nullopt : std::optional(address)));
  WEIR_ASSERT(truncated(address, 32, 128) == address);
  WEIR_ASSERT(truncated(address, 24, 64).is_v4() == address.is_v4());
}

std::optional<IpRange> check_range(std::string_view text) {
  const auto range = parse_ip_range(text);
  if (range) {
    WEIR_ASSERT(parse_ip_range(to_string(*range)) == *range);
    WEIR_ASSERT(range->contains(range->base));
    return *range;
  }
  const std::string& message = range.error().message;
  WEIR_ASSERT(message.size() < 350);
  WEIR_ASSERT(std::ranges::all_of(message, [](char c) { return c >= 0x20 && c < 0x7f; }));
  constexpr std::string_view kLead = "; did you mean ";
  const std::size_t at = message.rfind(kLead);
  if (at != std::string::npos && message.ends_with('?')) {
    const std::string guess = message.substr(at + kLead.size(), message.size() - at - kLead.size() - 1);
    WEIR_ASSERT(parse_ip_range(guess).has_value());
  } else {
    WEIR_ASSERT(message.ends_with("; write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"));
  }
  return std::nullopt;
}

// Whether some part of the header, without its backslashes, is that address.
bool stands_in(const Attribute& header, const IpAddress& address) {
  std::string text(header.value);
  std::erase(text, '\\');
  for (std::size_t from = 0; from < text.size(); ++from) {
    for (std::size_t size = 1; size <= std::min(text.size() - from, kNodeBytesMax); ++size) {
      if (parse_node(std::string_view(text).substr(from, size)) == address) return true;
    }
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view peer_text = take_until(rest, '\n');
  const std::string_view how = take_until(rest, '\n');
  std::string_view list = take_until(rest, '\n');
  const IpAddress peer = parse_node(peer_text).value_or(IpAddress{});

  std::vector<IpRange> ranges;
  while (!list.empty() && ranges.size() < 50) {
    if (const auto range = check_range(take_until(list, ' '))) ranges.push_back(*range);
  }
  std::vector<Attribute> headers;
  while (!rest.empty() && headers.size() < 50) {
    std::string_view line = take_until(rest, '\n');
    const std::string_view name = take_until(line, ':');
    headers.push_back({name, line});
    if (const auto range = check_range(line)) ranges.push_back(*range);
  }

  ProxyTrust trust{IpSet(ranges), ForwardedBy::x_forwarded_for, "X-Real-IP", 0};
  if (how.starts_with('f')) trust.by = ForwardedBy::forwarded;
  if (how.starts_with('s')) trust.by = ForwardedBy::single_header;
  if (how.size() > 1) trust.hops = static_cast<unsigned char>(how[1]) % 8;

  const IpAddress client = client_ip(peer, headers, trust);
  for (const IpAddress& address : {peer, client}) {
    check_address(address);
    bool is_in_some = false;
    for (const IpRange& range : ranges) {
      WEIR_ASSERT(range.contains(address) == contains_bit_by_bit(range, address));
      is_in_some = is_in_some || range.contains(address);
    }
    WEIR_ASSERT(trust.proxies.contains(address) == is_in_some);
  }
  if (client == peer) return 0;
  WEIR_ASSERT(trust.proxies.contains(peer));
  const std::string_view name = trust.by == ForwardedBy::x_forwarded_for ? "x-forwarded-for"
                                : trust.by == ForwardedBy::forwarded     ? "forwarded"
                                                                         : "x-real-ip";
  WEIR_ASSERT(std::ranges::any_of(headers, [&](const Attribute& header) {
    return header.name.size() == name.size() && stands_in(header, client);
  }));
  return 0;
}
