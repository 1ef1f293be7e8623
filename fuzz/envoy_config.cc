// Fuzzes the parser of Envoy's files: any bytes are a valid config, or an error whose lines are printable and name the
// file. A valid config compiles, and its rules find each of its limits.
//
// A byte 0 separates two files.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "envoy/envoy_rules.h"
#include "fuzz.h"

namespace {

using namespace weir;

void check_error(std::string_view message) {
  WEIR_ASSERT(!message.empty());
  WEIR_ASSERT(std::ranges::all_of(message, [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n'; }));
  WEIR_ASSERT(message.starts_with("a:") || message.starts_with("b:"));
}

// Looks up each limit by the entries of its descriptors. It must be found if each of them has a value: without a value,
// a wildcard may match first.
void find_all(const envoy::EnvoyRules& rules, const envoy::EnvoyDomain& domain,
              const std::vector<envoy::EnvoyDescriptor>& level, std::vector<Attribute>& path, bool has_values = true) {
  for (const envoy::EnvoyDescriptor& one : level) {
    path.push_back({one.key, one.value});
    envoy::EnvoyFound found;
    rules.find(domain.name, path, found);
    const bool has_all = has_values && one.has_value();
    if (one.limit && has_all) {
      WEIR_ASSERT(found.rule != nullptr);
      WEIR_ASSERT(found.rule->said == *one.limit);
      WEIR_ASSERT(found.key.empty() == one.limit->unlimited);
    }
    find_all(rules, domain, one.descriptors, path, has_all);
    path.pop_back();
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  std::vector<envoy::EnvoyFile> files = {{"a", std::string(bytes.substr(0, end))}};
  if (end < bytes.size()) files.push_back({"b", std::string(bytes.substr(end + 1))});
  const auto config = envoy::parse_envoy(files);
  if (!config) return check_error(config.error().message);
  const auto rules = envoy::EnvoyRules::compile(*config, Algorithm::fixed_window);
  WEIR_ASSERT(rules.has_value());
  for (const envoy::EnvoyDomain& domain : config->domains) {
    std::vector<Attribute> path;
    find_all(**rules, domain, domain.descriptors, path);
  }
}
