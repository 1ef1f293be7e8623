// compile(): the one place where a limit needs a file, that of a calendar's time zone.
//
// Zones are read from $TZDIR, or from where the system keeps them. A name has passed is_zone_name() before it
// becomes part of a path. Reads the file anew each time, so a limit made after an update of the zones knows it; keep
// the Limit rather than compiling it for every request. Any thread. Tested by compile_test.cc.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/limit.h"
#include "algorithm/tzif.h"
#include "nearest.h"
#include "weir/limit.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

fs::path zone_folder() {
  const char* named = std::getenv("TZDIR");
  return named != nullptr && *named != '\0' ? named : "/usr/share/zoneinfo";
}

bool begins_as_tzif(const fs::path& file) {
  char magic[4] = {};
  std::ifstream(file, std::ios::binary).read(magic, sizeof magic);
  return std::string_view(magic, sizeof magic) == "TZif";
}

// How far a name is from what was typed, or at least `far` if it is so far. Who types `Berlin` means the place,
// whatever the continent.
std::size_t zone_distance(std::string_view typed, std::string_view name, std::size_t far) {
  const std::size_t whole = length_gap(typed, name) > far ? far : edit_distance(typed, name);
  const std::string_view place = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
  if (typed.find('/') != std::string_view::npos || length_gap(typed, place) > far) return whole;
  return std::min(whole, edit_distance(typed, place));
}

// Looks through names only, and a bounded number of them: whoever sends quotas can make us do this.
std::string nearest_zone(const fs::path& folder, std::string_view typed) {
  std::string best;
  std::size_t best_distance = typo_max(typed) + 1;
  const std::size_t prefix = (folder / "").native().size();
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error), end;
  for (int seen = 0; !error && entry != end && seen < 5'000; entry.increment(error), ++seen) {
    const std::string name = entry->path().native().substr(prefix);
    if (entry.depth() == 0 && (name == "posix" || name == "right")) entry.disable_recursion_pending();
    if (!is_zone_name(name)) continue;
    const std::size_t distance = zone_distance(typed, name, best_distance + 1);
    const bool simpler = std::pair(name.size(), name) < std::pair(best.size(), best);
    const bool nearer = distance < best_distance || (distance == best_distance && simpler);
    if (nearer && begins_as_tzif(entry->path())) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

Error unknown_zone(const fs::path& folder, std::string_view typed) {
  if (!begins_as_tzif(folder / "UTC") && !begins_as_tzif(folder / "Etc/UTC")) {
    return {ErrorCode::unavailable, "there are no time zones in " + in_quotes(folder.string(), 200) +
                                        ": install the package tzdata, or name their folder in TZDIR; UTC needs none"};
  }
  const std::string meant = nearest_zone(folder, typed);
  const std::string advice = meant.empty() ? "; zones are named like Europe/Berlin" : "; did you mean " + meant + "?";
  return {ErrorCode::not_found, "unknown time zone " + in_quotes(typed, 64) + advice};
}

Result<Zone> read_zone(const std::string& name) {
  if (!is_zone_name(name)) {
    return fail(ErrorCode::invalid_argument, in_quotes(name) + " is no time zone like Europe/Berlin");
  }
  if (name == "UTC") return Zone{};
  const fs::path folder = zone_folder(), file = folder / name;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return fail(unknown_zone(folder, name));
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(ErrorCode::unavailable, "cannot read the time zone file " + in_quotes(file.string(), 200));
  const std::uintmax_t size = std::min<std::uintmax_t>(fs::file_size(file, error), kZoneBytesMax + 1);
  std::string bytes(error ? 0 : static_cast<std::size_t>(size), '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  auto zone = parse_tzif(bytes);
  if (!zone) return fail(ErrorCode::unavailable, in_quotes(file.string(), 200) + ": " + zone.error().message);
  return zone;
}

}  // namespace

Result<Limit> compile(const Quota& quota) {
  if (!quota.calendar) return compile_limit(quota, nullptr);
  auto zone = read_zone(quota.calendar->zone);
  if (!zone) return fail(zone.error());
  return compile_limit(quota,
                       std::make_shared<const Calendar>(quota.calendar->unit, quota.calendar->zone, std::move(*zone)));
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
