// Formats what table/contents.h reads from a state file, as text or JSON. See state.h.

#include "limiter/state.h"

#include <algorithm>
#include <cinttypes>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/calendar.h"
#include "algorithm/limit.h"
#include "base/text.h"
#include "limiter/find_calendar.h"
#include "table/contents.h"
#include "table/resize.h"

namespace weir::limiter {
namespace {

constexpr std::size_t kLimitsShown = 20;

Result<std::unique_ptr<table::Contents>> open_contents(const std::string& path) {
  auto mapping = table::open_copy(path, table::CopyTo::look);
  if (!mapping) return fail(mapping.error());
  return std::make_unique<table::Contents>(std::move(*mapping), find_calendar, read_clocks());
}

std::string seconds(std::int64_t us) {
  char text[32];
  std::snprintf(text, sizeof(text), "%" PRId64 ".%06" PRId64, us / 1'000'000, us % 1'000'000);
  return text;
}

// The limit as a quota. No quota contains a phase.
std::string quota_text(const Limit& limit) {
  Quota quota{.algorithm = limit.algorithm, .permits = limit.permits, .period = Micros{limit.period_us}};
  if (limit.calendar) quota.calendar = {limit.calendar->unit(), limit.calendar->zone_name()};
  if (algorithm::is_bucket(limit.algorithm) && limit.capacity != limit.permits) quota.burst = limit.capacity;
  return to_string(quota);
}

std::string phase_text(const Limit& limit) {
  return limit.phase_us == 0 ? "" : ", phase " + seconds(limit.phase_us) + " s";
}

// 1234567 -> 1,234,567
std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

// 1 key, 1,234,567 keys
std::string counted(std::uint64_t number, std::string_view noun) { return base::counted(grouped(number), noun); }

std::string mebibytes(std::uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

// A zone's name comes from the file, which may be damaged.
std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escaped;
    }
  }
  return out + "\"";
}

std::string json_line(const table::Held& held) {
  char text[256];
  std::snprintf(text, sizeof(text),
                "{\"name\":\"%013" PRIx64 "\",\"page\":%" PRIu64 ",\"algorithm\":\"%s\",\"limit_text\":", held.name,
                held.page, std::string(to_string(held.limit->algorithm)).c_str());
  std::string line = text + json_string(quota_text(*held.limit));
  if (held.limit->phase_us != 0) line += ",\"phase\":" + seconds(held.limit->phase_us);
  std::snprintf(text, sizeof(text), ",\"limit\":%" PRId64 ",\"used\":%" PRId64 ",\"remaining\":%" PRId64,
                held.peek.limit, held.peek.limit - held.peek.remaining, held.peek.remaining);
  return line + text + ",\"reset_after\":" + seconds(held.peek.reset_after.count()) + "}\n";
}

std::string row(std::string_view name, const std::string& value) {
  std::string text = "  ";
  text.append(name).append(std::max<std::size_t>(12, name.size() + 2) - name.size(), ' ');
  return text + value + "\n";
}

std::string use_text(const table::Contents& contents) {
  if (contents.is_in_use()) return "yes; the numbers below change while they are read";
  return contents.was_clean() ? "no" : "no; it was not closed cleanly: the next server that opens it repairs it";
}

using Shares = std::map<std::pair<Algorithm, std::string>, std::uint64_t>;

// The limits with the most live keys first.
std::string limits_text(const Shares& shares) {
  std::vector<std::pair<std::uint64_t, std::string>> rows;
  for (const auto& [which, count] : shares) {
    std::string algorithm(to_string(which.first));
    algorithm.resize(std::max<std::size_t>(16, algorithm.size()), ' ');
    rows.emplace_back(count, algorithm + which.second);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text = rows.empty() ? "" : "\n   live keys  limit\n";
  for (std::size_t i = 0; i < std::min(rows.size(), kLimitsShown); ++i) {
    const std::string count = grouped(rows[i].first);
    text += std::string(count.size() < 12 ? 12 - count.size() : 0, ' ') + count + "  " + rows[i].second + "\n";
  }
  if (rows.size() > kLimitsShown) text += "  and " + counted(rows.size() - kLimitsShown, "more limit") + "\n";
  return text;
}

std::string totals_text(const table::Totals& totals, const table::Region& region) {
  const std::uint64_t room = table::keys_of(region.pages());
  std::string text =
      row("keys", grouped(totals.live) + " live, " + grouped(totals.lapsed) + " expired; capacity " + grouped(room));
  if (totals.tickets > 0) text += row("tickets", grouped(totals.tickets) + " (reservations and idempotency ids)");
  text += row("fullest", std::to_string(totals.fullest) + " of " + std::to_string(table::kSlots) + " slots in a page");
  text += row("logs", mebibytes(totals.arena_lines * sizeof(table::Line)) + " of " +
                          mebibytes(region.arena_lines() * sizeof(table::Line)));
  if (totals.compact > 0) {
    text += row("compact", counted(totals.compact, "log") +
                               " compacted to two counters because the arena was full; raise --memory");
  }
  text += row("evicted", counted(totals.counters.evicted, "live key") + "; " +
                             counted(totals.counters.early, "request") + " of new keys denied early");
  if (totals.counters.no_room > 0)
    text += row("no_room", counted(totals.counters.no_room, "request") + " denied; raise --keys");
  text += row("swept", counted(totals.counters.swept, "expired key"));
  if (totals.unreadable > 0) text += row("damaged", counted(totals.unreadable, "unreadable slot"));
  return text;
}

}  // namespace

Result<std::string> inspect_state(const std::string& path) {
  const auto contents = open_contents(path);
  if (!contents) return fail(contents.error());
  Shares shares;
  const table::Totals totals = (*contents)->walk([&](const table::Held& held) {
    ++shares[{held.limit->algorithm, quota_text(*held.limit) + phase_text(*held.limit)}];
  });
  const table::Region& region = (*contents)->region();
  const table::Header& header = region.header();
  std::string text = path + ": state file, " + mebibytes(region.bytes()) + "\n";
  text += row("layout", std::to_string(header.version));
  text += row("created", table::time_text(header.created_us));
  text += row("in use", use_text(**contents));
  text += row("time", table::time_text((*contents)->now()) + "; last used " + table::time_text(header.latest_us));
  return text + totals_text(totals, region) + limits_text(shares);
}

Result<void> export_state(const std::string& path, std::FILE* out) {
  const auto contents = open_contents(path);
  if (!contents) return fail(contents.error());
  (*contents)->walk([&](const table::Held& held) { std::fputs(json_line(held).c_str(), out); });
  if (std::fflush(out) == 0 && std::ferror(out) == 0) return {};
  return fail(ErrorCode::unavailable, "cannot write the whole export; is the disk full?");
}

Result<std::string> resize_state(const std::string& path, const StateSize& size) {
  const auto resized =
      table::resize({.path = path, .keys = size.keys, .memory = size.memory_bytes, .find_calendar = find_calendar});
  if (!resized) return fail(resized.error());
  const auto room = [](const table::Geometry& geometry) {
    return grouped(table::keys_of(geometry.pages)) + " keys and " +
           mebibytes(geometry.arena_lines * sizeof(table::Line)) + " of logs";
  };
  return path + ": capacity " + room(resized->after) + ", before: " + room(resized->before) + "\n" +
         "keys: " + grouped(resized->kept) + " kept, " + grouped(resized->dropped) + " dropped (expired)\n";
}

}  // namespace weir::limiter
