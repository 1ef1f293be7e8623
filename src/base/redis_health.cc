// Parses the lines of INFO. See redis_health.h.
#include "base/redis_health.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"

namespace weir::base {
namespace {

using Fields = std::map<std::string_view, std::string_view, std::less<>>;

// `name:value`, one per line; a value with parts is `name=value,name=value`.
Fields split(std::string_view text, std::string_view ends, char between) {
  Fields fields;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(ends), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t at = line.find(between);
    if (at != line.npos && !line.starts_with('#')) fields.emplace(line.substr(0, at), line.substr(at + 1));
  }
  return fields;
}

std::string_view text_of(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : found->second;
}

std::uint64_t number_of(const Fields& fields, std::string_view name) {
  return to_number<std::uint64_t>(text_of(fields, name)).value_or(0);
}

}  // namespace

RedisHealth read_info(std::string_view info) {
  const Fields fields = split(info, "\r\n", ':');
  const std::string_view valkey = text_of(fields, "valkey_version");
  RedisHealth out;
  out.software = valkey.empty() ? "redis" : "valkey";
  out.version = valkey.empty() ? text_of(fields, "redis_version") : valkey;
  out.role = text_of(fields, "role");
  out.eviction = text_of(fields, "maxmemory_policy");
  out.memory = number_of(fields, "used_memory");
  out.memory_max = number_of(fields, "maxmemory");
  out.evicted = number_of(fields, "evicted_keys");
  out.replicas = number_of(fields, "connected_slaves");
  out.is_saving_broken = text_of(fields, "rdb_last_bgsave_status") == "err";
  out.is_loading = text_of(fields, "loading") == "1";
  const std::uint64_t offset = number_of(fields, "master_repl_offset");
  for (const auto& [name, value] : fields) {
    if (!name.starts_with("slave") || value.find("offset=") == value.npos) continue;
    const Fields replica = split(value, ",", '=');
    const std::uint64_t got = number_of(replica, "offset");
    out.behind = std::max(out.behind, offset - std::min(offset, got));
    out.lag_seconds = std::max(out.lag_seconds, number_of(replica, "lag"));
  }
  return out;
}

}  // namespace weir::base
