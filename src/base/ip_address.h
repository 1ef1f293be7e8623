// IP addresses and address ranges as values: parsed from text, compared, truncated to a prefix, looked up in a set.
//
// An IPv4 address is stored as ::ffff:a.b.c.d, so all spellings of an address are one value. The family of an address
// is decided by its bits, never by its notation. A limiter that gets this wrong gives each client two budgets, or all
// clients one. Nothing here allocates memory except to_string(), the errors and the construction of an IpSet. Pure;
// any thread may call it. Tested by ip_address_test.cc and fuzz/client_ip.cc.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::base {

struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  bool is_v4() const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// parse_ip()
//
// Parses an address without blanks, brackets, port or zone. IPv4 is four decimal numbers such as 192.0.2.1. Leading
// zeros are rejected, because some programs read them as octal. IPv6 is accepted in every form of RFC 4291.
std::optional<IpAddress> parse_ip(std::string_view text);

// parse_node()
//
// Parses an address as headers and sockets write it: also `192.0.2.1:80`, `[2001:db8::1]`, `[2001:db8::1]:80` and
// `fe80::1%eth0`. Surrounding blanks, the zone and the port are dropped; the port may be an obfuscated name (`:_x`).
// A text longer than kNodeBytesMax, not counting those blanks, is rejected.
inline constexpr std::size_t kNodeBytesMax = 128;

std::optional<IpAddress> parse_node(std::string_view text);

// The text of RFC 5952 for IPv6, and four decimal numbers for IPv4.
std::string to_string(const IpAddress& address);

// truncated()
//
// Returns the network of an address: the first `v4_bits` (at most 32) of an IPv4 address, or the first `v6_bits` (at
// most 128) of an IPv6 address. An IPv6 prefix is never applied to an IPv4 address, since that would leave nothing of
// it.
IpAddress truncated(const IpAddress& address, unsigned v4_bits, unsigned v6_bits);

// IpRange
//
// All addresses that share the first `bits` of `base`. A range is either IPv4 or IPv6: ::/0 is all of IPv6 and no
// IPv4. To cover both, list 0.0.0.0/0 too.
struct IpRange {
  IpAddress base;
  std::uint8_t bits = 128;  // counts all 16 bytes, so IPv4's /8 is 104

  bool is_v4() const { return bits >= 96 && base.is_v4(); }
  bool contains(const IpAddress& address) const;
  friend bool operator==(const IpRange&, const IpRange&) = default;
};

// Parses 10.0.0.0/8, 2001:db8::/32 or a single address. The error suggests the range that was probably meant, if any.
Result<IpRange> parse_ip_range(std::string_view text);

std::string to_string(const IpRange& range);

// IpSet
//
// An immutable set of ranges. A lookup is a binary search.
class IpSet {
 public:
  IpSet() = default;
  explicit IpSet(std::span<const IpRange> ranges);

  bool contains(const IpAddress& address) const;
  bool empty() const { return v4_.empty() && v6_.empty(); }

 private:
  struct Number {
    std::uint64_t high = 0, low = 0;
    friend auto operator<=>(const Number&, const Number&) = default;
  };
  template <class T>
  struct Interval {
    T first{}, last{};
  };
  template <class T>
  using Intervals = std::vector<Interval<T>>;  // sorted; no interval lies within another

  template <class T>
  static void drop_nested(Intervals<T>& intervals);
  template <class T>
  static bool holds(const Intervals<T>& intervals, const T& number);
  static Number number_of(const IpAddress& address);
  static std::uint32_t v4_number_of(const IpAddress& address);

  Intervals<std::uint32_t> v4_;
  Intervals<Number> v6_;
};

}  // namespace weir::base
