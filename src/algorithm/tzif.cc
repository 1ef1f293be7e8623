// Parses TZif bytes into a Zone, and finds a Zone's offsets. Any thread.
//
// g++ 12 has no time zones of its own. A file has one block with 32-bit times. Since version 2 it has a second block
// with 64-bit times, and a line with the clock changes after the last of them; if that block exists, it is used. The
// line is expanded to transitions that cover all times in Weir's decisions, so finding an offset costs one binary
// search.
#include "algorithm/tzif.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>
#include <utility>

#include "base/big_endian.h"
#include "base/nearest.h"

namespace weir::algorithm {
namespace {

using Day = ZoneRule::Day;
using std::chrono::sys_days;

// The bounds of RFC 9636 for a local clock's offset from UTC, a little beyond a day.
constexpr std::int32_t kOffsetMin_s = -89'999;
constexpr std::int32_t kOffsetMax_s = 93'599;

std::int64_t year_start_s(int year) {
  using namespace std::chrono;
  return sys_days{std::chrono::year{year} / January / 1}.time_since_epoch().count() * kDay_s;
}

// --- the yearly rule -------------------------------------------------------------------------------------------

sys_days date_of(const Day& day, int in_year) {
  using namespace std::chrono;
  const year y{in_year};
  if (day.kind == Day::Kind::month_week_day) {
    const month m{static_cast<unsigned>(day.month)};
    const weekday w{static_cast<unsigned>(day.day)};
    if (day.week == 5) return sys_days{y / m / w[last]};
    return sys_days{y / m / w[static_cast<unsigned>(day.week)]};
  }
  const sys_days first{y / January / 1};
  if (day.kind == Day::Kind::day_of_year) return first + days{day.day};
  return first + days{day.day - 1 + (y.is_leap() && day.day >= 60 ? 1 : 0)};
}

std::int64_t instant_s(const Day& day, int in_year, std::int32_t offset_before_s) {
  return date_of(day, in_year).time_since_epoch().count() * kDay_s + day.time_s - offset_before_s;
}

// Daylight saving lasts from its beginning to the next end, which in the southern hemisphere is next year's. If it
// lasts all year, one year's end meets or passes the next beginning; so this tests every interval nearby.
Zone::Stretch stretch_of(const ZoneRule& rule, std::int64_t utc_s) {
  using namespace std::chrono;
  if (!rule.has_daylight || utc_s < year_start_s(-9999) || utc_s > year_start_s(9999)) return {rule.standard_s};
  const int here = static_cast<int>(year_month_day{floor<days>(sys_seconds{seconds{utc_s}})}.year());
  Zone::Stretch stretch{rule.standard_s};
  for (int year = here - 2; year <= here + 2; ++year) {
    const std::int64_t begin = instant_s(rule.begin, year, rule.standard_s);
    const std::int64_t end = instant_s(rule.end, year, rule.daylight_s);
    const std::int64_t its_end = begin <= end ? end : instant_s(rule.end, year + 1, rule.daylight_s);
    if (begin <= utc_s && utc_s < its_end) stretch.offset_s = rule.daylight_s;
    if (begin > utc_s) stretch.end_s = std::min(stretch.end_s, begin);
    if (end > utc_s) stretch.end_s = std::min(stretch.end_s, end);
  }
  return stretch;
}

class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : rest_(text) {}

  std::optional<ZoneRule> read() {
    ZoneRule rule;
    if (!name() || !offset(rule.standard_s)) return {};
    if (rest_.empty()) return rule;
    rule.has_daylight = true;
    rule.daylight_s = rule.standard_s + 3600;
    if (!name()) return {};
    if (!rest_.empty() && rest_.front() != ',' && !offset(rule.daylight_s)) return {};
    if (rest_.empty()) rest_ = ",M3.2.0,M11.1.0";  // the default of every implementation when no dates are given
    if (!day(rule.begin) || !day(rule.end) || !rest_.empty()) return {};
    return rule;
  }

 private:
  bool eat(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool name() {
    const bool in_brackets = eat('<');
    const auto belongs = [&](char c) {
      const bool letter = base::lower(c) >= 'a' && base::lower(c) <= 'z';
      return letter || (in_brackets && ((c >= '0' && c <= '9') || c == '+' || c == '-'));
    };
    std::size_t length = 0;
    while (length < rest_.size() && belongs(rest_[length])) ++length;
    rest_.remove_prefix(length);
    return length >= 3 && (!in_brackets || eat('>'));
  }

  bool number(int min, int max, int& out) {
    std::size_t length = 0;
    for (out = 0; length < rest_.size() && length < 3 && rest_[length] >= '0' && rest_[length] <= '9'; ++length) {
      out = out * 10 + (rest_[length] - '0');
    }
    rest_.remove_prefix(length);
    return length > 0 && out >= min && out <= max;
  }

  bool time(int hours_max, std::int32_t& seconds) {
    const int sign = eat('-') ? -1 : (eat('+'), 1);
    int h = 0, m = 0, s = 0;
    if (!number(0, hours_max, h)) return false;
    if (eat(':') && !number(0, 59, m)) return false;
    if (eat(':') && !number(0, 59, s)) return false;
    seconds = sign * (h * 3600 + m * 60 + s);
    return true;
  }

  // POSIX counts offsets west of Greenwich.
  bool offset(std::int32_t& seconds) {
    if (!time(24, seconds)) return false;
    seconds = -seconds;
    return true;
  }

  bool day(Day& out) {
    if (!eat(',')) return false;
    bool ok = false;
    if (eat('M')) {
      out.kind = Day::Kind::month_week_day;
      ok = number(1, 12, out.month) && eat('.') && number(1, 5, out.week) && eat('.') && number(0, 6, out.day);
    } else if (eat('J')) {
      out.kind = Day::Kind::day_without_leap;
      ok = number(1, 365, out.day);
    } else {
      ok = number(0, 365, out.day);
    }
    return ok && (!eat('/') || time(167, out.time_s));
  }

  std::string_view rest_;
};

// --- the file --------------------------------------------------------------------------------------------------

constexpr std::size_t kHeaderBytes = 44;

struct Header {
  char version = 0;
  std::uint64_t utc_marks = 0, standard_marks = 0, leaps = 0, times = 0, types = 0, chars = 0;

  std::uint64_t block_bytes(std::uint64_t time_bytes) const {
    return times * (time_bytes + 1) + types * 6 + chars + leaps * (time_bytes + 4) + standard_marks + utc_marks;
  }
};

tl::unexpected<Error> bad(std::string what) {
  return fail(ErrorCode::invalid_argument, "not a usable time zone file: " + std::move(what));
}

Result<Header> read_header(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.substr(0, 4) != "TZif") return bad("it does not begin with a TZif header");
  Header h;
  h.version = bytes[4];
  if (h.version != 0 && (h.version < '2' || h.version > '4')) return bad("its version is not 1 to 4");
  std::size_t at = 20;
  for (std::uint64_t* count : {&h.utc_marks, &h.standard_marks, &h.leaps, &h.times, &h.types, &h.chars}) {
    *count = base::big_endian(bytes.substr(at, 4));
    at += 4;
  }
  return h;
}

// Reads the block after its header. The caller has checked that all of it is present.
Result<Zone> read_block(const Header& h, std::string_view block, std::size_t time_bytes) {
  if (h.leaps > 0) return bad("it counts leap seconds, as the files under right/ do; use the file without");
  if (h.types == 0 || h.types > 256)
    return bad("it has " + std::to_string(h.types) + " local time types, not 1 to 256");
  if (h.utc_marks != 0 && h.utc_marks != h.types)
    return bad("its UT/local indicators do not match its local time types");
  if (h.standard_marks != 0 && h.standard_marks != h.types)
    return bad("its standard/wall indicators do not match its local time types");

  const std::size_t types_at = h.times * (time_bytes + 1);
  std::vector<std::int32_t> offsets;
  for (std::size_t i = 0; i < h.types; ++i) {
    const auto offset =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(base::big_endian(block.substr(types_at + i * 6, 4))));
    if (offset < kOffsetMin_s || offset > kOffsetMax_s) return bad("an offset from UTC exceeds a day");
    if (base::big_endian(block.substr(types_at + i * 6 + 4, 1)) > 1)
      return bad("a daylight saving flag is neither 0 nor 1");
    if (base::big_endian(block.substr(types_at + i * 6 + 5, 1)) >= h.chars)
      return bad("an abbreviation index is out of range");
    offsets.push_back(offset);
  }

  Zone zone;
  zone.first_offset_s = offsets.front();
  zone.transitions.reserve(h.times);
  for (std::size_t i = 0; i < h.times; ++i) {
    const std::uint64_t raw = base::big_endian(block.substr(i * time_bytes, time_bytes));
    const std::int64_t at =
        time_bytes == 8 ? static_cast<std::int64_t>(raw) : static_cast<std::int32_t>(static_cast<std::uint32_t>(raw));
    const std::size_t type = base::big_endian(block.substr(h.times * time_bytes + i, 1));
    if (type >= h.types) return bad("a transition names a local time type that does not exist");
    if (!zone.transitions.empty() && zone.transitions.back().at_s >= at) return bad("its transitions are not in order");
    zone.transitions.push_back({at, offsets[type]});
  }
  return zone;
}

void unroll_rule(Zone& zone) {
  const std::int64_t until = year_start_s(2120);
  std::int64_t at = year_start_s(1900);
  if (zone.transitions.empty()) {
    zone.first_offset_s = zone.rule->standard_s;
  } else if (zone.transitions.back().at_s >= at) {
    at = zone.transitions.back().at_s;
    if (at < until) zone.transitions.pop_back();  // the rule adds it again
  }
  while (at < until) {
    const Zone::Stretch stretch = stretch_of(*zone.rule, at);
    zone.transitions.push_back({at, stretch.offset_s});
    at = stretch.end_s;
  }
}

// After the 64-bit block: a line feed, the rule or nothing, a line feed.
Result<Zone> with_footer(Zone zone, std::string_view footer) {
  if (footer.empty() || footer.front() != '\n') return bad("its footer is missing");
  const std::size_t end = footer.find('\n', 1);
  if (end == std::string_view::npos) return bad("its footer does not end with a newline");
  const std::string_view text = footer.substr(1, end - 1);
  if (text.empty()) return zone;
  const Result<ZoneRule> rule = parse_zone_rule(text);
  if (!rule) return bad(rule.error().message);
  zone.rule = *rule;
  unroll_rule(zone);
  return zone;
}

std::string truncated(std::uint64_t promised, std::size_t found) {
  return "its header declares " + std::to_string(promised) + " bytes, but " + std::to_string(found) + " follow";
}

}  // namespace

Result<ZoneRule> parse_zone_rule(std::string_view text) {
  if (const auto rule = RuleReader(text).read()) return *rule;
  return fail(ErrorCode::invalid_argument, base::in_quotes(text) + " is not a rule like 'CET-1CEST,M3.5.0,M10.5.0/3'");
}

Zone::Stretch Zone::stretch_at(std::int64_t utc_s) const {
  const auto next = std::ranges::upper_bound(transitions, utc_s, {}, &Transition::at_s);
  if (next == transitions.end() && rule) return stretch_of(*rule, utc_s);
  Stretch stretch{next == transitions.begin() ? first_offset_s : std::prev(next)->offset_s};
  if (next != transitions.end()) stretch.end_s = next->at_s;
  return stretch;
}

Result<Zone> parse_tzif(std::string_view bytes) {
  if (bytes.size() > kZoneBytesMax) return bad("it has over " + std::to_string(kZoneBytesMax) + " bytes");
  auto header = read_header(bytes);
  if (!header) return fail(header.error());
  bytes.remove_prefix(kHeaderBytes);
  if (header->block_bytes(4) > bytes.size()) return bad(truncated(header->block_bytes(4), bytes.size()));
  if (header->version == 0) return read_block(*header, bytes, 4);

  bytes.remove_prefix(header->block_bytes(4));
  header = read_header(bytes);
  if (!header) return fail(header.error());
  bytes.remove_prefix(kHeaderBytes);
  if (header->block_bytes(8) > bytes.size()) return bad(truncated(header->block_bytes(8), bytes.size()));
  auto zone = read_block(*header, bytes, 8);
  if (!zone) return zone;
  return with_footer(std::move(*zone), bytes.substr(header->block_bytes(8)));
}

}  // namespace weir::algorithm
