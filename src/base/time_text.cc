// Writes times as texts. See time_text.h.
#include "base/time_text.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string_view>

namespace weir::base {
namespace {

std::tm utc_of(Micros time) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(time).count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return parts;
}

void append_padded(std::string& out, std::string_view before, std::int64_t value, std::size_t width = 2) {
  const std::string digits = std::to_string(value);
  out.append(before).append(width - std::min(width, digits.size()), '0').append(digits);
}

void append_clock(std::string& out, const std::tm& at) {
  append_padded(out, "", at.tm_hour);
  append_padded(out, ":", at.tm_min);
  append_padded(out, ":", at.tm_sec);
}

}  // namespace

// Not by strftime(), whose names of days and months depend on the locale.
std::string http_date(Micros now) {
  static constexpr std::string_view kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::string_view kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                 "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::tm at = utc_of(now);
  std::string out(kDays[at.tm_wday]);
  append_padded(out, ", ", at.tm_mday);
  out.append(" ").append(kMonths[at.tm_mon]).append(" ").append(std::to_string(at.tm_year + 1900)).append(" ");
  append_clock(out, at);
  return out.append(" GMT");
}

std::string rfc3339(Micros time) {
  const std::tm at = utc_of(time);
  std::string out = std::to_string(at.tm_year + 1900);
  append_padded(out, "-", at.tm_mon + 1);
  append_padded(out, "-", at.tm_mday);
  out.append("T");
  append_clock(out, at);
  const auto rest = time - std::chrono::floor<std::chrono::seconds>(time);
  append_padded(out, ".", rest.count() / 1'000, 3);
  return out.append("Z");
}

}  // namespace weir::base
