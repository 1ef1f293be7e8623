// Fuzzes the reading of Envoy's files: whatever the bytes are, they are a sound config, or refused with lines that are
// printable and say where. What is sound compiles, and finds each of its own limits again.
// A byte 0 separates two files.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "envoy/envoy_rules.h"

namespace {

using namespace weir;

void check_error(std::string_view message) {
  WEIR_ASSERT(!message.empty());
  WEIR_ASSERT(std::ranges::all_of(message, [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n'; }));
  WEIR_ASSERT(message.starts_with("a:") || message.starts_with("b:"));
}

// Entries that are what the descriptors say lead to them, if each has a value: without one a wildcard may come first.
void find_all(const EnvoyRules& rules, const EnvoyDomain& domain, const std::vector<EnvoyDescriptor>& level,
              std::vector<Attribute>& path, bool has_values = true) {
  for (const EnvoyDescriptor& one : level) {
    path.push_back({one.key, one.value});
    EnvoyFound found;
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

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(bytes.find('\0'), bytes.size());
  std::vector<EnvoyFile> files = {{"a", std::string(bytes.substr(0, end))}};
  if (end < bytes.size()) files.push_back({"b", std::string(bytes.substr(end + 1))});
  const auto config = parse_envoy(files);
  if (!config) {
    check_error(config.error().message);
    return 0;
  }
  const auto rules = EnvoyRules::compile(*config, Algorithm::fixed_window);
  WEIR_ASSERT(rules.has_value());
  for (const EnvoyDomain& domain : config->domains) {
    std::vector<Attribute> path;
    find_all(**rules, domain, domain.descriptors, path);
  }
  return 0;
}
