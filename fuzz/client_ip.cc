// Fuzzes the search for the client's address: the result is the peer, or an address in a forwarding header. The parsers
// that it uses must agree with simpler ones.
//
// An input has lines: the peer; the kind of header (x, f or s) and the number of hops; the trusted ranges, separated by
// blanks. Each further line is a header, NAME:VALUE.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "policy/client_ip.h"

namespace {

using namespace weir;

std::string_view take_until(std::string_view& rest, char end) {
  const std::string_view taken = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(taken.size() + 1, rest.size()));
  return taken;
}

bool contains_bit_by_bit(const base::IpRange& range, const base::IpAddress& address) {
  if (range.is_v4() != address.is_v4()) return false;
  for (unsigned i = 0; i < range.bits; ++i) {
    if (((range.base.bytes[i / 8] ^ address.bytes[i / 8]) >> (7 - i % 8) & 1) != 0) return false;
  }
  return true;
}

void check_address(const base::IpAddress& address) {
  WEIR_ASSERT(base::parse_ip(base::to_string(address)) == address);
  WEIR_ASSERT(base::parse_node(base::to_string(address)) == address);
  WEIR_ASSERT(base::parse_node('[' + base::to_string(address) + "]:80") ==
              (address.is_v4() ? std::nullopt : std::optional(address)));
  WEIR_ASSERT(base::truncated(address, 32, 128) == address);
  WEIR_ASSERT(base::truncated(address, 24, 64).is_v4() == address.is_v4());
}

std::optional<base::IpRange> check_range(std::string_view text) {
  const auto range = base::parse_ip_range(text);
  if (range) {
    WEIR_ASSERT(base::parse_ip_range(base::to_string(*range)) == *range);
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
    WEIR_ASSERT(base::parse_ip_range(guess).has_value());
  } else {
    WEIR_ASSERT(message.ends_with("; write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"));
  }
  return std::nullopt;
}

// Whether some part of the header, without its backslashes, is that address.
bool stands_in(const Attribute& header, const base::IpAddress& address) {
  std::string text(header.value);
  std::erase(text, '\\');
  for (std::size_t from = 0; from < text.size(); ++from) {
    for (std::size_t size = 1; size <= std::min(text.size() - from, base::kNodeBytesMax); ++size) {
      if (base::parse_node(std::string_view(text).substr(from, size)) == address) return true;
    }
  }
  return false;
}

}  // namespace

void fuzz(std::string_view rest) {
  const std::string_view peer_text = take_until(rest, '\n');
  const std::string_view how = take_until(rest, '\n');
  std::string_view list = take_until(rest, '\n');
  const base::IpAddress peer = base::parse_node(peer_text).value_or(base::IpAddress{});

  std::vector<base::IpRange> ranges;
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

  policy::ProxyTrust trust{base::IpSet(ranges), policy::ForwardedBy::x_forwarded_for, "X-Real-IP", 0};
  if (how.starts_with('f')) trust.by = policy::ForwardedBy::forwarded;
  if (how.starts_with('s')) trust.by = policy::ForwardedBy::single_header;
  if (how.size() > 1) trust.hops = static_cast<unsigned char>(how[1]) % 8;

  const base::IpAddress client = policy::client_ip(peer, headers, trust);
  for (const base::IpAddress& address : {peer, client}) {
    check_address(address);
    bool is_in_some = false;
    for (const base::IpRange& range : ranges) {
      WEIR_ASSERT(range.contains(address) == contains_bit_by_bit(range, address));
      is_in_some = is_in_some || range.contains(address);
    }
    WEIR_ASSERT(trust.proxies.contains(address) == is_in_some);
  }
  if (client == peer) return;
  WEIR_ASSERT(trust.proxies.contains(peer));
  const std::string_view name = trust.by == policy::ForwardedBy::x_forwarded_for ? "x-forwarded-for"
                                : trust.by == policy::ForwardedBy::forwarded     ? "forwarded"
                                                                                 : "x-real-ip";
  WEIR_ASSERT(std::ranges::any_of(headers, [&](const Attribute& header) {
    return header.name.size() == name.size() && stands_in(header, client);
  }));
}
