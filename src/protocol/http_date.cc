// The Date field of HTTP, in the one form that a server may send. See headers.h.
//
// Apart from the other fields, because it knows nothing of limits. Tested by headers_test.cc.
#include <array>
#include <chrono>
#include <cstdint>

#include "protocol/headers.h"

namespace weir {
namespace {

void append_two_digits(std::string& out, std::int64_t value) {
  out.push_back(static_cast<char>('0' + value / 10));
  out.push_back(static_cast<char>('0' + value % 10));
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
  append_two_digits(out, second / 3600);
  out.push_back(':');
  append_two_digits(out, second / 60 % 60);
  out.push_back(':');
  append_two_digits(out, second % 60);
  return out.append(" GMT");
}

}  // namespace weir
