// A text file of lines and words. See saved_fleet_state.h.
#include "fleet/saved_fleet_state.h"

#include <array>
#include <sstream>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/limit.h"
#include "base/file.h"
#include "base/siphash.h"
#include "base/text.h"
#include "fleet/redis_key.h"

namespace weir::fleet {
namespace {

constexpr std::string_view kHead = "weir fleet 1\n", kEnd = "end ";
constexpr std::size_t kFileMax = std::size_t{256} << 20;
constexpr std::string_view kNoCalendar = "-";

std::string checksum(std::string_view text) {
  return std::to_string(base::siphash<2, 4>({.k0 = 1, .k1 = 2}, text).low);
}

std::string to_hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) base::append_hex(out, c);
  return out;
}

bool from_hex(std::string_view text, std::string& out) {
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const auto byte = base::hex_byte(text.substr(i));
    if (!byte) return false;
    out.push_back(*byte);
  }
  return true;
}

// The numbers of a limit, in the order they are written in.
template <class AnyLimit>
auto numbers_of(AnyLimit& limit) {
  return std::array{&limit.permits, &limit.period_us, &limit.phase_us,  &limit.capacity,
                    &limit.rate,    &limit.weight,    &limit.events_max};
}

std::string line_of(const UnsyncedCharge& charge) {
  std::ostringstream line;
  line << "owed " << to_hex(charge.name) << ' ' << charge.cost << ' ' << charge.until.count();
  for (const std::int64_t* const number : numbers_of(charge.limit)) line << ' ' << *number;
  if (const algorithm::Calendar* const calendar = charge.limit.calendar.get()) {
    line << ' ' << algorithm::to_string(calendar->unit()) << ' ' << calendar->zone_name() << '\n';
  } else {
    line << ' ' << kNoCalendar << " -\n";
  }
  return line.str();
}

bool read_charge(std::istringstream& words, UnsyncedCharge& charge) {
  std::string name, unit, zone;
  std::int64_t until = 0;
  words >> name >> charge.cost >> until;
  for (std::int64_t* const number : numbers_of(charge.limit)) words >> *number;
  words >> unit >> zone;
  if (!words || !from_hex(name, charge.name) || charge.name.empty() || charge.cost < 0) return false;
  const auto algorithm = algorithm_of(charge.name[0]);
  if (!algorithm) return false;
  charge.limit.algorithm = *algorithm;
  charge.until = Micros{until};
  if (unit == kNoCalendar) return true;
  auto of_calendar = compile(std::to_string(charge.limit.permits) + "/calendar_" + unit + " " + zone, *algorithm);
  if (of_calendar) charge.limit = *std::move(of_calendar);
  return of_calendar.has_value();
}

Error damaged() { return {ErrorCode::invalid_argument, "the saved state is damaged or from another version"}; }

}  // namespace

std::string to_text(const SavedFleetState& kept) {
  std::string text(kHead);
  text += "seat " + std::to_string(kept.rank.rank) + ' ' + std::to_string(kept.rank.nodes) + '\n';
  for (const UnsyncedCharge& charge : kept.charges) text += line_of(charge);
  const std::string sum = checksum(text);
  return text.append(kEnd).append(sum).append("\n");
}

Result<SavedFleetState> parse_saved_fleet_state(std::string_view text) {
  const std::size_t end = text.rfind(kEnd);
  if (!text.starts_with(kHead) || end == text.npos) return fail(damaged());
  const std::string_view sum = text.substr(end + kEnd.size());
  text = text.substr(0, end);
  if (sum != checksum(text) + "\n") return fail(damaged());
  SavedFleetState kept;
  text.remove_prefix(kHead.size());
  while (!text.empty()) {
    const std::size_t length = text.find('\n');
    std::istringstream words{std::string(text.substr(0, length))};
    text.remove_prefix(length == text.npos ? text.size() : length + 1);
    std::string what;
    words >> what;
    bool is_read = true;
    if (what == "seat") {
      is_read = static_cast<bool>(words >> kept.rank.rank >> kept.rank.nodes) && kept.rank.rank < kept.rank.nodes;
    } else if (what == "owed") {
      is_read = read_charge(words, kept.charges.emplace_back());
    }
    if (!is_read) return fail(damaged());
  }
  return kept;
}

Result<SavedFleetState> read_saved_fleet_state(const std::string& path) {
  const auto text = base::read_file(path, kFileMax);
  if (!text) return fail(text.error());
  auto kept = parse_saved_fleet_state(*text);
  if (!kept) return fail(kept.error().code, path + ": " + kept.error().message);
  return kept;
}

Result<void> write_saved_fleet_state(const std::string& path, const SavedFleetState& kept) {
  return base::replace_file(path, to_text(kept)).transform([](const base::Descriptor&) {});
}

}  // namespace weir::fleet
