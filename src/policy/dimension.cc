// Config words that are neither quotas nor paths. See dimension.h.
#include "policy/dimension.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include "algorithm/quota_words.h"
#include "base/nearest.h"

namespace weir::policy {
namespace {

constexpr std::array<std::string_view, 13> kAttributes = {"user",   "api_key", "ip",     "tenant",   "plan",
                                                          "method", "host",    "path",   "identity", "header",
                                                          "query",  "entry",   "capture"};
constexpr std::string_view kAllForms =
    "known are user, api_key, ip, tenant, plan, method, host, path, identity, header:NAME, query:NAME, entry:NAME, "
    "{part of the path} and global";

tl::unexpected<Error> wrong(std::string message) { return fail(ErrorCode::invalid_argument, std::move(message)); }

bool take_bits(std::string_view& text, unsigned& bits) {
  if (!text.starts_with('/')) return false;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), bits);
  if (error != std::errc{} || end == text.data() + 1) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// ip/24 groups IPv4, ip/48 groups IPv6, ip/24/48 both.
Result<Dimension> parse_address(std::string_view text) {
  Dimension out{.kind = weir::AttributeKind::ip};
  std::string_view rest = text.substr(2);
  unsigned first = 0, second = 0;
  const bool has_first = take_bits(rest, first), has_second = has_first && take_bits(rest, second);
  const bool is_sound = rest.empty() && (has_second ? first <= 32 && second <= 128 : first <= 128);
  if (!is_sound || (has_first && first == 0) || (has_second && second == 0)) {
    return wrong(base::in_quotes(text) +
                 " is not a group of addresses; write ip, ip/24 (IPv4), ip/48 (IPv6) or ip/24/48");
  }
  if (has_second) {
    out.v4_bits = static_cast<std::uint8_t>(first);
    out.v6_bits = static_cast<std::uint8_t>(second);
  } else if (has_first) {
    (first <= 32 ? out.v4_bits : out.v6_bits) = static_cast<std::uint8_t>(first);
  }
  return out;
}

Result<Dimension> named(weir::AttributeKind kind, std::string_view name, std::string_view text) {
  if (name.empty() || name.size() > 128 || !std::ranges::all_of(name, is_name_letter)) {
    return wrong(base::in_quotes(text) + " names no " + std::string(to_string(kind)) +
                 ": a name is 1 to 128 letters, digits, '-', '_' and '.'");
  }
  return Dimension{.kind = kind, .name = kind == weir::AttributeKind::header ? base::lower(name) : std::string(name)};
}

}  // namespace

std::string_view to_string(weir::AttributeKind kind) { return kAttributes[static_cast<std::size_t>(kind)]; }

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || base::is_digit(c) || c == '_' || c == '-' || c == '.';
}

}  // namespace weir::policy

namespace weir {

std::string to_string(const Dimension& dimension) {
  switch (dimension.kind) {
    case AttributeKind::header:
    case AttributeKind::query:
    case AttributeKind::entry:
      return std::string(policy::to_string(dimension.kind)) + ':' + dimension.name;
    case AttributeKind::capture:
      return '{' + dimension.name + '}';
    case AttributeKind::ip: {
      const bool other_v4 = dimension.v4_bits != 32, other_v6 = dimension.v6_bits != 64;
      std::string text = "ip";
      // ip/20 would set the IPv4 prefix, so other values are written in full.
      if (other_v4 || (other_v6 && dimension.v6_bits <= 32)) text += '/' + std::to_string(dimension.v4_bits);
      if (other_v6) text += '/' + std::to_string(dimension.v6_bits);
      return text;
    }
    default:
      return std::string(policy::to_string(dimension.kind));
  }
}

}  // namespace weir

namespace weir::policy {

Result<Dimension> parse_dimension(std::string_view text) {
  if (text == "ip" || text.starts_with("ip/")) return parse_address(text);
  if (text.starts_with('{') && text.ends_with('}') && text.size() > 2) {
    return named(weir::AttributeKind::capture, text.substr(1, text.size() - 2), text);
  }
  const std::size_t colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const auto kind = std::ranges::find(kAttributes, word);
  if (kind != kAttributes.end() && *kind != "capture") {
    const auto found = static_cast<weir::AttributeKind>(kind - kAttributes.begin());
    const bool needs_name = found >= weir::AttributeKind::header;
    if (needs_name && colon == text.npos) {
      return wrong(base::in_quotes(text) + " needs a name, as in " + std::string(word) + ":x-org");
    }
    if (needs_name) return named(found, text.substr(colon + 1), text);
    if (colon == text.npos) return Dimension{.kind = found};
  }
  std::string message = "unknown attribute " + base::in_quotes(text);
  std::string meant(base::nearest(word, kAttributes));
  if (colon != text.npos) meant += text.substr(colon);
  const bool works = !meant.empty() && meant != text && parse_dimension(meant);
  if (!works) return wrong(message.append("; ").append(kAllForms));
  return wrong(message.append(", did you mean ").append(meant).append("?"));
}

// Greedy: on a mismatch, the last star takes one more character. Nothing before that star needs another try.
bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

namespace {

// Removes `count` digits from the front.
bool take_digits(std::string_view& text, std::size_t count, int& value) {
  if (text.size() < count || !std::ranges::all_of(text.substr(0, count), base::is_digit)) return false;
  std::from_chars(text.data(), text.data() + count, value);
  text.remove_prefix(count);
  return true;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// `Z`, `+01:00`, `-0800`.
bool take_offset(std::string_view& text, std::chrono::minutes& offset) {
  if (take(text, 'Z') || take(text, 'z')) return true;
  const bool is_west = text.starts_with('-');
  int hours = 0, minutes = 0;
  if (!take(text, '+') && !take(text, '-')) return false;
  if (!take_digits(text, 2, hours)) return false;
  take(text, ':');
  if (!take_digits(text, 2, minutes) || hours > 15 || minutes > 59) return false;
  offset = std::chrono::minutes{(is_west ? -1 : 1) * (60 * hours + minutes)};
  return true;
}

}  // namespace

Result<Micros> parse_time(std::string_view text) {
  const auto refuse = [text] {
    return wrong(base::in_quotes(text) + " is not a time; write it like 2026-12-31 or 2026-12-31T18:30:00Z");
  };
  std::string_view rest = text;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  std::chrono::minutes offset{0};
  if (!take_digits(rest, 4, year) || !take(rest, '-') || !take_digits(rest, 2, month) || !take(rest, '-') ||
      !take_digits(rest, 2, day)) {
    return refuse();
  }
  if (!rest.empty()) {
    if (!take(rest, 'T') && !take(rest, 't') && !take(rest, ' ')) return refuse();
    if (!take_digits(rest, 2, hour) || !take(rest, ':') || !take_digits(rest, 2, minute)) return refuse();
    if (take(rest, ':') && !take_digits(rest, 2, second)) return refuse();
    if (take(rest, '.')) {  // fractions of a second, which are ignored
      const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
      if (digits < 1 || digits > 9) return refuse();
      rest.remove_prefix(digits);
    }
    if (!take_offset(rest, offset) || !rest.empty()) return refuse();
  }
  using namespace std::chrono;
  const year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                            std::chrono::day{static_cast<unsigned>(day)}};
  if (!date.ok() || year < 1970 || year > 2099 || hour > 23 || minute > 59 || second > 59) return refuse();
  const auto time = sys_days{date} + hours{hour} + minutes{minute} + seconds{second} - offset;
  const Micros since = duration_cast<Micros>(time.time_since_epoch());
  const Micros end = duration_cast<Micros>(sys_days{std::chrono::year{2100} / 1 / 1}.time_since_epoch());
  if (since < Micros{0} || since >= end) return refuse();
  return since;
}

std::string time_text(Micros time) {
  using namespace std::chrono;
  const sys_seconds at{duration_cast<seconds>(time)};
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss clock{at - day};
  const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  return std::to_string(static_cast<int>(date.year())) + '-' + two(static_cast<unsigned>(date.month())) + '-' +
         two(static_cast<unsigned>(date.day())) + 'T' + two(clock.hours().count()) + ':' +
         two(clock.minutes().count()) + ':' + two(clock.seconds().count()) + 'Z';
}

}  // namespace weir::policy
