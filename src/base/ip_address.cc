// Implements ip_address.h: first the parsing of addresses, which is on the path of every request, then ranges and
// sets.
#include "base/ip_address.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>

#include "base/nearest.h"
#include "base/text.h"

namespace weir::base {
namespace {

constexpr std::array<std::uint8_t, 12> kV4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr unsigned kV4PrefixBits = 96;
constexpr std::size_t kTextMax = 45;  // six groups of four digits and a dotted quad
constexpr std::size_t kGroups = 8;
constexpr std::size_t kNoGap = kGroups + 1;

constexpr std::uint8_t kNoDigit = 16;
constexpr std::array<std::uint8_t, 256> kHexValues = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 10; ++i) digits[std::size_t{'0'} + i] = i;
  for (std::uint8_t i = 0; i < 6; ++i) {
    digits[std::size_t{'a'} + i] = digits[std::size_t{'A'} + i] = static_cast<std::uint8_t>(10 + i);
  }
  return digits;
}();

bool parse_quad(std::string_view text, std::uint8_t* out) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int i = 0; i < 4; ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return false;
    if (at == end || !is_digit(*at)) return false;
    int number = *at++ - '0';
    if (at != end && is_digit(*at)) {
      if (number == 0) return false;
      number = 10 * number + (*at++ - '0');
      if (at != end && is_digit(*at)) number = 10 * number + (*at++ - '0');
      if (number > 255) return false;
    }
    out[i] = static_cast<std::uint8_t>(number);
  }
  return at == end;
}

std::optional<IpAddress> parse_v4(std::string_view text) {
  IpAddress address;
  if (!parse_quad(text, &address.bytes[kV4Prefix.size()])) return std::nullopt;
  std::ranges::copy(kV4Prefix, address.bytes.begin());
  return address;
}

// Writes groups at their place as if nothing were left out. `gap` is the position of "::", where zeros are then
// inserted.
std::optional<IpAddress> parse_v6(std::string_view text) {
  if (text.size() > kTextMax) return std::nullopt;
  IpAddress address;
  std::size_t count = 0, gap = kNoGap;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (text.starts_with("::")) gap = 0, at += 2;
  while (at != end) {
    if (count == kGroups) return std::nullopt;
    const char* const start = at;
    unsigned group = 0, digit = 0;
    while (at != end && (digit = kHexValues[static_cast<unsigned char>(*at)]) != kNoDigit)
      ++at, group = group << 4 | digit;
    if (at != end && *at == '.') {
      if (count > kGroups - 2 || !parse_quad({start, end}, &address.bytes[2 * count])) return std::nullopt;
      count += 2;
      break;
    }
    if (at == start || at - start > 4) return std::nullopt;
    address.bytes[2 * count] = static_cast<std::uint8_t>(group >> 8);
    address.bytes[2 * count + 1] = static_cast<std::uint8_t>(group);
    ++count;
    if (at == end) break;
    if (*at++ != ':' || at == end) return std::nullopt;
    if (*at != ':') continue;
    if (gap != kNoGap) return std::nullopt;
    gap = count;
    ++at;
  }
  if (gap == kNoGap ? count < kGroups : count == kGroups) return std::nullopt;  // "::" stands for at least one group
  const auto first = address.bytes.begin();
  const auto from = first + static_cast<std::ptrdiff_t>(2 * std::min(gap, count));
  std::rotate(from, first + static_cast<std::ptrdiff_t>(2 * count), address.bytes.end());
  return address;
}

// A zone names an interface of the machine that wrote it, so it cannot distinguish clients. It is dropped.
std::optional<IpAddress> parse_v6_with_zone(std::string_view text) {
  const std::size_t percent = text.find('%');
  if (percent == text.npos) return parse_v6(text);
  const std::string_view zone = text.substr(percent + 1);
  const auto may_name = [](char c) {
    return is_letter_or_digit(c) || std::string_view("-._~%").find(c) != std::string_view::npos;
  };
  if (zone.empty() || !std::ranges::all_of(zone, may_name)) return std::nullopt;
  return parse_v6(text.substr(0, percent));
}

// A port number, or an obfuscated name for one: RFC 7239, section 6.
bool is_port(std::string_view text) {
  if (text.starts_with('_')) {
    const auto may_hide = [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; };
    return text.size() > 1 && std::ranges::all_of(text, may_hide);
  }
  return text.size() <= 5 && to_number<std::uint16_t>(text);
}

std::uint64_t load(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap64(word) : word;
}

void store(std::uint64_t word, std::uint8_t* bytes) {
  if (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
  std::memcpy(bytes, &word, sizeof word);
}

constexpr std::uint64_t mask(unsigned bits) { return bits == 0 ? 0 : ~std::uint64_t{0} << (64 - bits); }

IpAddress first_bits(const IpAddress& address, unsigned bits) {
  WEIR_ASSERT(bits <= 128);
  IpAddress first = address;
  store(load(&address.bytes[0]) & mask(std::min(bits, 64u)), &first.bytes[0]);
  store(load(&address.bytes[8]) & mask(std::max(bits, 64u) - 64), &first.bytes[8]);
  return first;
}

}  // namespace

bool IpAddress::is_v4() const { return std::memcmp(bytes.data(), kV4Prefix.data(), kV4Prefix.size()) == 0; }

std::optional<IpAddress> parse_ip(std::string_view text) {
  const auto address = parse_v4(text);
  return address ? address : parse_v6(text);
}

std::optional<IpAddress> parse_node(std::string_view text) {
  text = trimmed(text);
  if (text.size() > kNodeBytesMax) return std::nullopt;
  if (const auto address = parse_v4(text)) return address;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return std::nullopt;
    const std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && (rest.front() != ':' || !is_port(rest.substr(1)))) return std::nullopt;
    return parse_v6_with_zone(text.substr(1, end - 1));
  }
  const std::size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  if (text.find(':', colon + 1) != text.npos) return parse_v6_with_zone(text);  // has at least two colons
  return is_port(text.substr(colon + 1)) ? parse_v4(text.substr(0, colon)) : std::nullopt;
}

std::string to_string(const IpAddress& address) {
  std::string text;
  const auto add = [&text](unsigned value, int base) {
    char digits[8];
    text.append(digits, std::to_chars(digits, std::end(digits), value, base).ptr);
  };
  if (address.is_v4()) {
    for (std::size_t i = kV4Prefix.size(); i < 16; ++i) {
      if (i > kV4Prefix.size()) text += '.';
      add(address.bytes[i], 10);
    }
    return text;
  }
  const auto group = [&](std::size_t i) { return unsigned{address.bytes[2 * i]} << 8 | address.bytes[2 * i + 1]; };
  std::size_t gap = kGroups, gap_size = 1;  // the first of the longest runs of zeros; a single zero is written out
  for (std::size_t i = 0, run = 0; i < kGroups; ++i) {
    run = group(i) == 0 ? run + 1 : 0;
    if (run > gap_size) gap_size = run, gap = i + 1 - run;
  }
  for (std::size_t i = 0; i < kGroups; ++i) {
    if (i == gap) {
      text += "::";
      i += gap_size - 1;
    } else {
      if (!text.empty() && !text.ends_with(':')) text += ':';
      add(group(i), 16);
    }
  }
  return text;
}

IpAddress truncated(const IpAddress& address, unsigned v4_bits, unsigned v6_bits) {
  WEIR_ASSERT(v4_bits <= 32);
  return first_bits(address, address.is_v4() ? kV4PrefixBits + v4_bits : v6_bits);
}

bool IpRange::contains(const IpAddress& address) const {
  return address.is_v4() == is_v4() && first_bits(address, bits) == first_bits(base, bits);
}

namespace {

std::optional<unsigned> parse_prefix(std::string_view text) {
  if (text.size() > 3 || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return to_number<unsigned>(text);
}

IpRange network_of(const IpAddress& address, unsigned bits) {
  return {first_bits(address, bits), static_cast<std::uint8_t>(bits)};
}

// The prefix length that a mask such as 255.255.0.0 means.
std::optional<unsigned> prefix_of_mask(std::string_view text) {
  const auto address = parse_v4(text);
  if (!address) return std::nullopt;
  const auto ones = static_cast<unsigned>(std::countl_one(load(&address->bytes[8]) << 32));
  if (load(&address->bytes[8]) << 32 != mask(ones)) return std::nullopt;
  return ones;
}

// guess_range()
//
// Guesses the range that was probably meant: without port and brackets, with left-out numbers added (10/8), with a
// prefix instead of a mask, and without anything after the prefix. The guess is only suggested, never used.
std::optional<IpRange> guess_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view host = trimmed(text.substr(0, slash));
  auto address = parse_node(host);
  if (slash == text.npos) return address ? std::optional(network_of(*address, 128)) : std::nullopt;
  std::string padded(host.substr(0, kTextMax));
  for (int i = 0; i < 3 && !address; ++i) address = parse_v4(padded += ".0");
  const std::string_view behind = trimmed(text.substr(slash + 1));
  auto prefix = parse_prefix(behind);
  if (!prefix) prefix = prefix_of_mask(behind);
  if (!address || !prefix) return std::nullopt;
  if (address->is_v4() && *prefix <= 32) return network_of(*address, kV4PrefixBits + *prefix);
  const bool is_dotted = host.find(':') == host.npos;  // ::ffff:10.0.0.0/40 was not meant as ::/40
  if (*prefix > 128 || (address->is_v4() && (is_dotted || *prefix < kV4PrefixBits))) return std::nullopt;
  return network_of(*address, *prefix);
}

tl::unexpected<Error> bad_range(ErrorCode code, std::string_view text, std::string_view why) {
  const auto guess = guess_range(text);
  return fail(code, in_quotes(text) + " is not an address range: " + std::string(why) +
                        (guess ? "; did you mean " + to_string(*guess) + "?"
                               : "; write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"));
}

}  // namespace

Result<IpRange> parse_ip_range(std::string_view text) {
  const auto bad = [text](std::string_view why) { return bad_range(ErrorCode::invalid_argument, text, why); };
  const std::size_t slash = text.find('/');
  const std::string_view host = text.substr(0, slash);
  const auto address = parse_ip(host);
  if (!address && parse_node(host)) return bad("write the address without spaces, brackets, port or zone");
  if (!address && slash == text.npos) return bad("it is neither an IPv4 nor an IPv6 address");
  if (!address) return bad("the text before the slash is neither an IPv4 nor an IPv6 address");
  if (slash == text.npos) return IpRange{*address, 128};

  const bool is_dotted = host.find(':') == host.npos;
  const auto prefix = parse_prefix(text.substr(slash + 1));
  if (!prefix || *prefix > (is_dotted ? 32 : 128)) {
    return bad_range(prefix ? ErrorCode::out_of_range : ErrorCode::invalid_argument, text,
                     is_dotted ? "the prefix of an IPv4 range is a number from 0 to 32"
                               : "the prefix of an IPv6 range is a number from 0 to 128");
  }
  const IpRange range = network_of(*address, is_dotted ? kV4PrefixBits + *prefix : *prefix);
  if (range.base != *address) return bad("the address has bits beyond its prefix of " + std::to_string(*prefix));
  return range;
}

std::string to_string(const IpRange& range) {
  if (range.bits == 128) return to_string(range.base);
  return to_string(range.base) + '/' + std::to_string(range.is_v4() ? range.bits - kV4PrefixBits : range.bits);
}

IpSet::Number IpSet::number_of(const IpAddress& address) { return {load(&address.bytes[0]), load(&address.bytes[8])}; }

std::uint32_t IpSet::v4_number_of(const IpAddress& address) {
  return static_cast<std::uint32_t>(load(&address.bytes[8]));
}

// Drops ranges within others. Two ranges are either nested or disjoint; they never overlap partly.
template <class T>
void IpSet::drop_nested(Intervals<T>& intervals) {
  std::ranges::sort(
      intervals, [](const auto& a, const auto& b) { return a.first != b.first ? a.first < b.first : a.last > b.last; });
  std::size_t kept = 0;
  for (const Interval<T> interval : intervals) {
    if (kept == 0 || interval.first > intervals[kept - 1].last) intervals[kept++] = interval;
  }
  intervals.resize(kept);
  intervals.shrink_to_fit();
}

template <class T>
bool IpSet::holds(const Intervals<T>& intervals, const T& number) {
  const auto after = std::ranges::upper_bound(intervals, number, {}, &Interval<T>::first);
  return after != intervals.begin() && number <= std::prev(after)->last;
}

IpSet::IpSet(std::span<const IpRange> ranges) {
  for (const IpRange& range : ranges) {
    const IpAddress first = first_bits(range.base, range.bits);
    const unsigned bits = range.bits;
    if (range.is_v4()) {
      const auto rest = static_cast<std::uint32_t>(~mask(bits - 64));
      v4_.push_back({v4_number_of(first), v4_number_of(first) | rest});
    } else {
      const Number from = number_of(first);
      v6_.push_back({from, {from.high | ~mask(std::min(bits, 64u)), from.low | ~mask(std::max(bits, 64u) - 64)}});
    }
  }
  drop_nested(v4_);
  drop_nested(v6_);
}

bool IpSet::contains(const IpAddress& address) const {
  return address.is_v4() ? holds(v4_, v4_number_of(address)) : holds(v6_, number_of(address));
}

}  // namespace weir::base
