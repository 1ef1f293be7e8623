// compile(): the only place where a limit needs a file, that of a calendar's time zone.
//
// Zone files are read from $TZDIR, or from the system's folder. A name must pass is_zone_name() before it becomes
// part of a path. No message contains that path, because a remote client that sent the quota may see the message. The
// file is read at every call, so a limit made after an update of the zones uses it. Keep the Limit instead of
// compiling it for every request. An unknown zone costs about 0.1 ms, mostly to read the list of all names and
// suggest one. Without that list, walking the folder costs about 0.4 ms. Any thread. Tested by compile_test.cc.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/limit.h"
#include "algorithm/tzif.h"
#include "base/file.h"
#include "base/nearest.h"
#include "limiter/find_calendar.h"
#include "weir/limit.h"

namespace weir::limiter {
namespace {

namespace fs = std::filesystem;

fs::path zone_folder() {
  const char* named = std::getenv("TZDIR");
  return named != nullptr && *named != '\0' ? named : "/usr/share/zoneinfo";
}

// Returns an empty string if the file cannot be read.
std::string start_of(const fs::path& file, std::size_t bytes) {
  return base::read_start(file.native(), bytes).value_or(std::string());
}

bool is_tzif(const fs::path& file) { return start_of(file, 4) == "TZif"; }

// Other files of the folder in the zone format: the machine's own zone, and copies of all zones with and without leap
// seconds.
bool is_beside_the_zones(std::string_view name) {
  const std::string plain = base::lower(name);
  const std::string_view top = std::string_view(plain).substr(0, plain.find('/'));
  return top == "posix" || top == "right" || plain == "posixrules" || plain == "localtime";
}

// PST, CEST. Every letter of these counts: PST is not a typo of EST.
bool is_abbreviation(std::string_view typed) {
  return typed.size() <= 3 ||
         (typed.size() == 4 && std::ranges::all_of(typed, [](char c) { return base::lower(c) != c; }));
}

// The letters of a word as a bit set, ignoring case. Two words are at least as far apart as the number of letters
// that only one of them has.
std::uint32_t letters_of(std::string_view word) {
  std::uint32_t letters = 0;
  for (const char c : word) letters |= std::uint32_t{1} << (c & 31);
  return letters;
}

// Picks the zone that was probably meant from all names passed to consider().
class ZoneGuess {
 public:
  ZoneGuess(const fs::path& folder, std::string_view typed)
      : folder_(folder), typed_(typed), letters_(letters_of(typed)) {
    // A wrong digit means another zone, as does a wrong letter in a short word. Three typos mean another word.
    const bool exact = typed.size() <= 4 || typed.find_first_of("0123456789") != std::string_view::npos;
    best_distance_ = exact ? 1 : std::min<std::size_t>(base::typo_max(typed), 2) + 1;
    // `Berlin` means the place, on any continent. But Etc/GMT+5 is not what GMT+5 means elsewhere.
    by_place_ = typed.find_first_of("/0123456789") == std::string_view::npos && !is_abbreviation(typed);
  }

  void consider(std::string_view name) {
    std::size_t distance = distance_to(name);
    if (by_place_) distance = std::min(distance, distance_to(name.substr(name.rfind('/') + 1)));  // npos + 1 is 0
    const bool simpler = std::pair(name.size(), name) < std::pair(best_.size(), std::string_view(best_));
    if (distance > best_distance_ || (distance == best_distance_ && !simpler)) return;
    if (!algorithm::is_zone_name(name) || is_beside_the_zones(name) || !is_tzif(folder_ / name)) return;
    best_ = name;
    best_distance_ = distance;
  }

  const std::string& best() const { return best_; }

 private:
  // Not exact beyond best_distance_.
  std::size_t distance_to(std::string_view name) const {
    const std::size_t far = best_distance_ + 1;
    if (base::length_gap(typed_, name) >= far) return far;
    const std::uint32_t letters = letters_of(name);
    const int only = std::max(std::popcount(letters & ~letters_), std::popcount(letters_ & ~letters));
    return static_cast<std::size_t>(only) >= far ? far : base::edit_distance(typed_, name, far);
  }

  const fs::path& folder_;
  std::string_view typed_;
  std::uint32_t letters_;
  std::size_t best_distance_;
  bool by_place_;
  std::string best_;
};

// tzdata's list of all zones: `Z name ...` and `L target name` among lines of rules.
void consider_listed(std::string_view list, ZoneGuess& guess) {
  while (!list.empty()) {
    std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(line.size() + 1, list.size()));
    if (!line.starts_with("Z ") && !line.starts_with("L ")) continue;
    const std::size_t words_before = line[0] == 'L' ? 2 : 1;
    for (std::size_t i = 0; i < words_before; ++i) line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
    guess.consider(line.substr(0, line.find(' ')));
  }
}

// Nearly all zones are in the two top levels of the folder.
void consider_files(const fs::path& folder, ZoneGuess& guess) {
  const std::size_t prefix = (folder / "").native().size();
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
  for (int seen = 0; !error && entry != end && seen < 1'000; entry.increment(error), ++seen) {
    const std::string_view name = std::string_view(entry->path().native()).substr(prefix);
    if (entry.depth() > 0 || is_beside_the_zones(name)) entry.disable_recursion_pending();
    guess.consider(name);
  }
}

Error unknown_zone(const fs::path& folder, std::string_view typed) {
  constexpr std::size_t kListBytesMax = std::size_t{1} << 18;
  const std::string what = "unknown time zone " + base::in_quotes(typed, 64);
  if (!is_tzif(folder / "UTC") && !is_tzif(folder / "Etc/UTC")) {
    return {ErrorCode::unavailable, what +
                                        ": this machine has no time zone files; install the package tzdata, or set "
                                        "TZDIR to their folder; UTC needs none"};
  }
  ZoneGuess guess(folder, typed);
  const std::string list = start_of(folder / "tzdata.zi", kListBytesMax);
  if (list.empty()) {
    consider_files(folder, guess);
  } else {
    consider_listed(list, guess);
  }
  if (!guess.best().empty()) return {ErrorCode::not_found, what + "; did you mean " + guess.best() + "?"};
  const bool short_form = is_abbreviation(typed);
  return {ErrorCode::not_found, what + (short_form ? "; zones are named by places, like America/Los_Angeles"
                                                   : "; zones are named like Europe/Berlin")};
}

Result<algorithm::Zone> read_zone(const std::string& name) {
  if (!algorithm::is_zone_name(name)) {
    return fail(ErrorCode::invalid_argument, base::in_quotes(name) + " is not a time zone like Europe/Berlin");
  }
  if (name == "UTC") return algorithm::Zone{};
  const fs::path folder = zone_folder();
  if (is_beside_the_zones(name)) return fail(unknown_zone(folder, name));
  const std::string bytes = start_of(folder / name, algorithm::kZoneBytesMax + 1);
  if (!bytes.starts_with("TZif")) return fail(unknown_zone(folder, name));
  auto zone = algorithm::parse_tzif(bytes);
  if (!zone)
    return fail(ErrorCode::unavailable, "time zone " + base::in_quotes(name, 64) + ": " + zone.error().message);
  return zone;
}

}  // namespace

std::shared_ptr<const algorithm::Calendar> find_calendar(CalendarUnit unit, const std::string& zone) {
  const auto limit = compile(Quota{.algorithm = Algorithm::fixed_window, .permits = 1, .calendar = {{unit, zone}}});
  return limit ? limit->calendar : nullptr;
}

}  // namespace weir::limiter

namespace weir {

Result<Limit> compile(const Quota& quota) {
  if (!quota.calendar) return algorithm::compile_limit(quota, nullptr);
  auto zone = limiter::read_zone(quota.calendar->zone);
  if (!zone) return fail(zone.error());
  return algorithm::compile_limit(
      quota, std::make_shared<const algorithm::Calendar>(quota.calendar->unit, quota.calendar->zone, std::move(*zone)));
}

Result<Limit> compile(std::string_view text, std::optional<Algorithm> algorithm) {
  const auto quota = parse_quota(text, algorithm);
  if (!quota) return fail(quota.error());
  auto limit = compile(*quota);
  if (limit || limit.error().code != ErrorCode::not_found) return limit;
  Error error = limit.error();  // only a zone can be not found, and it is the last word of the text
  error.column = static_cast<std::int32_t>(text.rfind(quota->calendar->zone)) + 1;
  error.message = "column " + std::to_string(error.column) + ": " + error.message;
  return fail(std::move(error));
}

}  // namespace weir
