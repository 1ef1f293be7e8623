// IP addresses and ranges of them, as values: read from text, compared, cut to a prefix, looked up in a set.
//
// An IPv4 address is held as ::ffff:a.b.c.d, so that every spelling of it is one value: what an address is, is decided
// from its bits and never from its notation. A limiter that forgets this gives each client two budgets, or all clients
// one. Nothing here allocates but to_string(), the errors and the making of an IpSet. Pure; any thread. Tested by
// ip_address_test.cc and fuzz/client_ip.cc.
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

namespace weir {

struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  bool is_v4() const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

// parse_ip()
//
// 192.0.2.1 in four decimal numbers without leading zeros, which some read as octal; IPv6 in every form of RFC 4291.
// No blanks, brackets, port or zone.
std::optional<IpAddress> parse_ip(std::string_view text);

// parse_node()
//
// An address as headers and sockets name it: also `192.0.2.1:80`, `[2001:db8::1]`, `[2001:db8::1]:80` and
// `fe80::1%eth0`. Blanks around it, the port, which may be hidden (`:_x`), and the zone are dropped. Longer than
// kNodeBytesMax, without the blanks, is no address.
inline constexpr std::size_t kNodeBytesMax = 128;

std::optional<IpAddress> parse_node(std::string_view text);

// As RFC 5952 writes it; IPv4 in four numbers.
std::string to_string(const IpAddress& address);

// truncated()
//
// The network that the address is of: the first `v4_bits` (to 32) of an IPv4 address, or the first `v6_bits` (to 128)
// of another. An IPv6 prefix is never put on an IPv4 address, of which it would leave nothing.
IpAddress truncated(const IpAddress& address, unsigned v4_bits, unsigned v6_bits);

// IpRange
//
// The addresses that share the first `bits` of `base`. Of IPv4 or of IPv6, never of both: ::/0 is all of IPv6, and
// whoever means IPv4 too lists 0.0.0.0/0 with it.
struct IpRange {
  IpAddress base;
  std::uint8_t bits = 128;  // of all 16 bytes, so IPv4's /8 is 104

  bool is_v4() const { return bits >= 96 && base.is_v4(); }
  bool contains(const IpAddress& address) const;
  friend bool operator==(const IpRange&, const IpRange&) = default;
};

// 10.0.0.0/8, 2001:db8::/32, or one address. An error tells which range was probably meant, where that can be guessed.
Result<IpRange> parse_ip_range(std::string_view text);

std::string to_string(const IpRange& range);

// IpSet
//
// Many ranges, made once; a lookup takes as many steps as their number has bits.
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
  using Intervals = std::vector<Interval<T>>;  // sorted, and none within another

  template <class T>
  static void drop_nested(Intervals<T>& intervals);
  template <class T>
  static bool holds(const Intervals<T>& intervals, const T& number);
  static Number number_of(const IpAddress& address);
  static std::uint32_t v4_number_of(const IpAddress& address);

  Intervals<std::uint32_t> v4_;
  Intervals<Number> v6_;
};

}  // namespace weir
