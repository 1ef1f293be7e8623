// A text file of lines and words. See keepsake.h.
#include "fleet/keepsake.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/limit.h"
#include "base/fresh_file.h"
#include "base/siphash.h"
#include "fleet/redis_key.h"

namespace weir {
namespace {

constexpr std::string_view kHead = "weir fleet 1\n", kEnd = "end ";
constexpr std::uintmax_t kFileMax = std::uintmax_t{256} << 20;
constexpr std::string_view kNoCalendar = "-";
constexpr std::string_view kDigits = "0123456789abcdef";

std::string checksum(std::string_view text) {
  return std::to_string(table::siphash<2, 4>({.k0 = 1, .k1 = 2}, text).low);
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out.push_back(kDigits[static_cast<unsigned char>(c) >> 4]);
    out.push_back(kDigits[static_cast<unsigned char>(c) & 15]);
  }
  return out;
}

bool from_hex(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]), low = kDigits.find(text[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return false;
    out.push_back(static_cast<char>(high << 4 | low));
  }
  return text.size() % 2 == 0;
}

// The numbers of a limit, in the order they are written in.
template <class AnyLimit>
auto numbers_of(AnyLimit& limit) {
  return std::array{&limit.permits, &limit.period_us, &limit.phase_us,  &limit.capacity,
                    &limit.rate,    &limit.weight,    &limit.events_max};
}

std::string line_of(const Debt& debt) {
  std::ostringstream line;
  line << "owed " << to_hex(debt.name) << ' ' << debt.cost << ' ' << debt.until.count();
  for (const std::int64_t* const number : numbers_of(debt.limit)) line << ' ' << *number;
  if (const Calendar* const calendar = debt.limit.calendar.get()) {
    line << ' ' << to_string(calendar->unit()) << ' ' << calendar->zone_name() << '\n';
  } else {
    line << ' ' << kNoCalendar << " -\n";
  }
  return line.str();
}

bool read_debt(std::istringstream& words, Debt& debt) {
  std::string name, unit, zone;
  std::int64_t until = 0;
  words >> name >> debt.cost >> until;
  for (std::int64_t* const number : numbers_of(debt.limit)) words >> *number;
  words >> unit >> zone;
  if (!words || !from_hex(name, debt.name) || debt.name.empty() || debt.cost < 0) return false;
  const auto algorithm = algorithm_of(debt.name[0]);
  if (!algorithm) return false;
  debt.limit.algorithm = *algorithm;
  debt.until = Micros{until};
  if (unit == kNoCalendar) return true;
  auto of_calendar = compile(std::to_string(debt.limit.permits) + "/calendar_" + unit + " " + zone, *algorithm);
  if (of_calendar) debt.limit = *std::move(of_calendar);
  return of_calendar.has_value();
}

Error damaged() { return {ErrorCode::invalid_argument, "the saved state is damaged or from another version"}; }

}  // namespace

std::string to_text(const Keepsake& kept) {
  std::string text(kHead);
  text += "seat " + std::to_string(kept.seat.rank) + ' ' + std::to_string(kept.seat.nodes) + '\n';
  for (const Debt& debt : kept.debts) text += line_of(debt);
  const std::string sum = checksum(text);
  return text.append(kEnd).append(sum).append("\n");
}

Result<Keepsake> parse_keepsake(std::string_view text) {
  const std::size_t end = text.rfind(kEnd);
  if (!text.starts_with(kHead) || end == text.npos) return fail(damaged());
  const std::string_view sum = text.substr(end + kEnd.size());
  text = text.substr(0, end);
  if (sum != checksum(text) + "\n") return fail(damaged());
  Keepsake kept;
  text.remove_prefix(kHead.size());
  while (!text.empty()) {
    const std::size_t length = text.find('\n');
    std::istringstream words{std::string(text.substr(0, length))};
    text.remove_prefix(length == text.npos ? text.size() : length + 1);
    std::string what;
    words >> what;
    bool is_read = true;
    if (what == "seat") {
      is_read = static_cast<bool>(words >> kept.seat.rank >> kept.seat.nodes) && kept.seat.rank < kept.seat.nodes;
    } else if (what == "owed") {
      is_read = read_debt(words, kept.debts.emplace_back());
    }
    if (!is_read) return fail(damaged());
  }
  return kept;
}

Result<Keepsake> read_keepsake(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error == std::errc::no_such_file_or_directory) return fail(ErrorCode::not_found, path + ": does not exist");
  if (error) return fail(ErrorCode::unavailable, path + ": " + error.message());
  if (size > kFileMax) return fail(ErrorCode::unavailable, path + ": too large for a saved state");
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    return fail(ErrorCode::unavailable, path + ": cannot read the file");
  auto kept = parse_keepsake(text);
  if (!kept) return fail(kept.error().code, path + ": " + kept.error().message);
  return kept;
}

// Writes a whole new file that only its owner can read, then renames it.
Result<void> write_keepsake(const std::string& path, const Keepsake& kept) {
  const std::string beside = path + ".new";
  const int file = open_fresh_file(beside);
  const bool is_written = file >= 0 && write_all(file, to_text(kept)) && fsync(file) == 0;
  const int why = errno;
  if (file >= 0) close(file);
  if (!is_written) return fail(ErrorCode::unavailable, beside + ": cannot write the file: " + std::strerror(why));
  std::error_code error;
  std::filesystem::rename(beside, path, error);
  if (error) return fail(ErrorCode::unavailable, path + ": cannot write the file: " + error.message());
  return {};
}

}  // namespace weir
