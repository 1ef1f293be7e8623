// Formats times: the HTTP Date field, in the only form that a server may send, and RFC 3339. See headers.h and
// rfc3339.h.
//
// Separate from the other fields, because it is independent of limits. Tested by headers_test.cc.
#include <array>
#include <chrono>
#include <cstdint>

#include "base/rfc3339.h"
#include "protocol/headers.h"

namespace weir {
namespace {

void append_two_digits(std::string& out, std::int64_t value) {
  out.push_back(static_cast<char>('0' + value / 10));
  out.push_back(static_cast<char>('0' + value % 10));
}

void append_time_of_day(std::string& out, std::int64_t second) {
  append_two_digits(out, second / 3600);
  out.push_back(':');
  append_two_digits(out, second / 60 % 60);
  out.push_back(':');
  append_two_digits(out, second % 60);
}

}  // namespace

std::string http_date(Micros now) {
  static constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                               "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  using std::chrono::sys_days;
  const auto days = std::chrono::floor<std::chrono::days>(now);
  const std::chrono::year_month_day date{sys_days{days}};
  const std::int64_t second = std::chrono::floor<std::chrono::seconds>(now - days).count();
  std::string out(kDays[std::chrono::weekday{sys_days{days}}.c_encoding()]);
  out.append(", ");
  append_two_digits(out, static_cast<unsigned>(date.day()));
  out.append(" ").append(kMonths[static_cast<unsigned>(date.month()) - 1]).append(" ");
  out.append(std::to_string(static_cast<int>(date.year()))).append(" ");
  append_time_of_day(out, second);
  return out.append(" GMT");
}

std::string rfc3339(Micros time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{std::chrono::sys_days{days}};
  const std::int64_t ms = std::chrono::floor<std::chrono::milliseconds>(time - days).count();
  std::string out = std::to_string(static_cast<int>(date.year()));
  out.push_back('-');
  append_two_digits(out, static_cast<unsigned>(date.month()));
  out.push_back('-');
  append_two_digits(out, static_cast<unsigned>(date.day()));
  out.push_back('T');
  append_time_of_day(out, ms / 1000);
  out.push_back('.');
  out.push_back(static_cast<char>('0' + ms / 100 % 10));
  append_two_digits(out, ms % 100);
  return out.append("Z");
}

}  // namespace weir
