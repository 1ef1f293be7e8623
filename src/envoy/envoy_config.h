// The config files of Envoy's reference rate limit service as values: domains, each with a tree of descriptors and
// limits.
//
//   auto config = weir::envoy::parse_envoy(std::vector<weir::envoy::EnvoyFile>{{"edge.yaml", text}});
//   if (!config) return report(config.error().message);   // every error at once: edge.yaml:3:5: ...
//
// The parser refuses what the reference service refuses, with the position and the fix: unknown keys, an empty key or
// domain, a duplicate composite key or domain, and bad units. A known key in the wrong place has no effect in the
// reference service. The parser accepts it with a warning. It also refuses a duplicate key in one map and a second
// document, since one of the two would have no effect. Pure; any thread may call it. Tested by envoy_config_test.cc.
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

namespace weir::policy {
struct Node;
}  // namespace weir::policy

namespace weir::envoy {

inline constexpr std::size_t kEnvoyFilesMax = 1'000;
inline constexpr std::size_t kEnvoyDescriptorsMax = 100'000;  // of all files
inline constexpr std::size_t kEnvoyTextBytesMax = 4'096;      // of a key, value, name or domain

enum class EnvoyUnit : std::uint8_t { second, minute, hour, day, week, month, year };

// Returns the name used in the files, such as `minute`.
std::string_view to_string(EnvoyUnit unit);
// Returns the length of a window. Windows start at multiples of it since the epoch: weeks begin on Thursdays, a month
// has 30 days and a year has 365.
std::int64_t seconds_of(EnvoyUnit unit);

struct EnvoyLimit {
  std::uint32_t requests_per_unit = 0;  // 0: always over the limit
  EnvoyUnit unit = EnvoyUnit::second;   // ignored if unlimited
  bool unlimited = false;
  std::string name{};
  std::vector<std::string> replaces{};  // names of limits that do not apply where this one matches
  Position at{};
  friend bool operator==(const EnvoyLimit&, const EnvoyLimit&) = default;
};

struct EnvoyDescriptor {
  std::string key{};
  std::string value{};  // empty: any value that no other descriptor names; may contain `*`
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
  // The text that entries are compared with: `key`, or `key_value`. Different pairs may have the same text.
  std::string composite() const { return has_value() ? key + '_' + value : key; }
  bool is_wildcard() const { return key.find('*') != key.npos || value.find('*') != value.npos; }
  friend bool operator==(const EnvoyDescriptor&, const EnvoyDescriptor&) = default;
};

struct EnvoyDomain {
  std::string name{};
  std::string file{};  // the file that defines it
  std::vector<EnvoyDescriptor> descriptors{};
  Position at{};
  friend bool operator==(const EnvoyDomain&, const EnvoyDomain&) = default;
};

struct EnvoyConfig {
  std::vector<EnvoyDomain> domains{};   // one per file, in the order of the files
  std::vector<std::string> warnings{};  // one line each, with its position
  friend bool operator==(const EnvoyConfig&, const EnvoyConfig&) = default;
};

struct EnvoyFile {
  std::string name{};  // its name in error messages
  std::string text{};
};

// parse_envoy()
//
// Parses all files, or fails. Errors are in the order of the files and of their text.
Result<EnvoyConfig> parse_envoy(std::span<const EnvoyFile> files) noexcept;

// Interprets a YAML scalar as the YAML reader of Envoy's reference service does: YAML 1.1 as implemented in Go. `yes`
// is true, `0x10` is 16, `08` and `1e3` are fractions, and a quoted scalar is text. That service refuses fractions
// wherever they appear.
//
// Returns a 64-bit integer, or nothing for any other scalar.
std::optional<std::int64_t> envoy_whole(const policy::Node& scalar);
std::optional<bool> envoy_boolean(const policy::Node& scalar);

// Whether the scalar is any other number: a fraction, an exponent, infinity, NaN, or an integer beyond 64 bits.
bool is_envoy_fraction(const policy::Node& scalar);

}  // namespace weir::envoy
