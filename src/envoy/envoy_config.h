// The files of Envoy's reference rate limit service as values: domains, and in each a tree of descriptors with limits.
//
//   auto config = weir::parse_envoy(std::vector<weir::EnvoyFile>{{"edge.yaml", text}});
//   if (!config) return report(config.error().message);   // every error at once: edge.yaml:3:5: ...
//
// What the reference service refuses is refused, with its place and the fix: unknown keys, an empty key or domain, a
// composite key or a domain twice, bad units. What it takes without effect, a known key in the wrong place, is taken,
// and is a warning. Beyond it, a key twice in one map and a second document are refused: one of the two would be
// without effect. Pure; any thread. Tested by envoy_config_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kEnvoyFilesMax = 1'000;
inline constexpr std::size_t kEnvoyDescriptorsMax = 100'000;  // of all files
inline constexpr std::size_t kEnvoyTextBytesMax = 4'096;      // of a key, a value, a name or a domain

enum class EnvoyUnit : std::uint8_t { second, minute, hour, day, week, month, year };

// `minute`, as the files write it.
std::string_view to_string(EnvoyUnit unit);
// Weeks begin on Thursdays, a month has 30 days and a year 365: windows are multiples of this since the epoch.
std::int64_t seconds_of(EnvoyUnit unit);

struct EnvoyLimit {
  std::uint32_t requests_per_unit = 0;  // 0: always over
  EnvoyUnit unit = EnvoyUnit::second;   // means nothing if unlimited
  bool unlimited = false;
  std::string name{};
  std::vector<std::string> replaces{};  // names of limits that do not count where this one is matched
  Position at{};
  friend bool operator==(const EnvoyLimit&, const EnvoyLimit&) = default;
};

struct EnvoyDescriptor {
  std::string key{};
  std::string value{};  // empty: any that no other descriptor names; may hold `*`
  std::optional<EnvoyLimit> limit{};
  bool shadow_mode = false;
  bool quota_mode = false;
  bool detailed_metric = false;
  bool value_to_metric = false;
  bool share_threshold = false;
  bool has_metadata = false;
  std::vector<EnvoyDescriptor> descriptors{};
  Position at{};

  bool has_value() const { return !value.empty(); }
  // What entries are compared with: `key`, or `key_value`. Another pair may have the same.
  std::string composite() const { return has_value() ? key + '_' + value : key; }
  bool is_wildcard() const { return key.find('*') != key.npos || value.find('*') != value.npos; }
  friend bool operator==(const EnvoyDescriptor&, const EnvoyDescriptor&) = default;
};

struct EnvoyDomain {
  std::string name{};
  std::string file{};  // that it was read from
  std::vector<EnvoyDescriptor> descriptors{};
  Position at{};
  friend bool operator==(const EnvoyDomain&, const EnvoyDomain&) = default;
};

struct EnvoyConfig {
  std::vector<EnvoyDomain> domains{};   // one of each file, in their order
  std::vector<std::string> warnings{};  // a line each, with its place
  friend bool operator==(const EnvoyConfig&, const EnvoyConfig&) = default;
};

struct EnvoyFile {
  std::string name{};  // what errors call it
  std::string text{};
};

// parse_envoy()
//
// All files or none. The lines of an error stand in the order of the files and of their text.
Result<EnvoyConfig> parse_envoy(std::span<const EnvoyFile> files) noexcept;

}  // namespace weir
