// Builds the tree, searches it, and writes the result. See envoy_rules.h.
#include "envoy/envoy_rules.h"

#include <algorithm>
#include <utility>

#include "algorithm/limit.h"
#include "base/family.h"
#include "base/few.h"
#include "base/key_space.h"
#include "base/sha256.h"
#include "base/text.h"

namespace weir::envoy {
namespace {

constexpr std::size_t kEntriesMax = 64;    // more entries than any file is deep
constexpr std::size_t kPlainKeyMax = 256;  // a longer key is replaced by its hash

// Shortens a text, and replaces every byte that could end a quoted text or a line.
std::string as_label(std::string_view text) {
  constexpr std::size_t kBytesMax = 128;
  std::string out(text.substr(0, kBytesMax));
  for (char& c : out) {
    if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') c = '_';
  }
  return out;
}

Result<Limit> limit_of(const EnvoyLimit& said, Algorithm algorithm) {
  return algorithm::compile_limit(
      {.algorithm = algorithm, .permits = said.requests_per_unit, .period = Micros{seconds_of(said.unit) * 1'000'000}},
      nullptr);
}

}  // namespace

Result<std::shared_ptr<const EnvoyRules>> EnvoyRules::compile(const EnvoyConfig& config, Algorithm algorithm) {
  auto out = std::make_shared<EnvoyRules>();
  for (const EnvoyDomain& domain : config.domains) {
    auto level = out->level_of(domain, domain.descriptors, "", algorithm);
    if (!level) return fail(std::move(level.error()));
    out->domains_[domain.name] = *std::move(level);
  }
  return out;
}

Result<std::unique_ptr<EnvoyRules::Level>> EnvoyRules::level_of(const EnvoyDomain& domain,
                                                                const std::vector<EnvoyDescriptor>& descriptors,
                                                                const std::string& parent, Algorithm algorithm) {
  auto level = std::make_unique<Level>();
  for (const EnvoyDescriptor& one : descriptors) {
    const std::string composite = one.composite(), stat = parent + composite;
    Branch& branch = level->branches[composite];
    branch.composite = composite;
    branch.value_to_metric = one.value_to_metric;
    branch.share_threshold = one.share_threshold;
    if (one.is_wildcard()) level->wildcards.emplace_back(Wildcard(composite), &branch);
    if (one.limit) {
      EnvoyRule& rule = rules_.emplace_back(EnvoyRule{.place = rules_.size(),
                                                      .domain = domain.name,
                                                      .stat = stat,
                                                      .said = *one.limit,
                                                      .shadow_mode = one.shadow_mode,
                                                      .quota_mode = one.quota_mode,
                                                      .detailed_metric = one.detailed_metric});
      rule.family = base::family_of("envoy/" + rule.domain, stat);
      rule.label = as_label(rule.said.name.empty() ? stat : rule.said.name);
      if (!one.limit->unlimited) {
        auto limit = limit_of(*one.limit, algorithm);
        if (!limit) {
          return fail(limit.error().code, domain.file + ":" + std::to_string(one.limit->at.line) + ":" +
                                              std::to_string(one.limit->at.column) + ": " + limit.error().message);
        }
        rule.limit = *std::move(limit);
        rule.quota = std::to_string(one.limit->requests_per_unit) + '/' + std::string(to_string(one.limit->unit));
      }
      branch.rule = &rule;
    }
    if (one.descriptors.empty()) continue;
    auto below = level_of(domain, one.descriptors, stat + '.', algorithm);
    if (!below) return below;
    branch.below = *std::move(below);
  }
  return level;
}

EnvoyRules::Step EnvoyRules::step(const Level& level, const Attribute& entry, std::string& buffer) {
  buffer.assign(entry.name).append("_").append(entry.value);
  if (const auto exact = level.branches.find(buffer); exact != level.branches.end()) return {&exact->second, By::value};
  for (const auto& [pattern, branch] : level.wildcards) {
    if (pattern.matches(buffer)) return {branch, By::wildcard};
  }
  const auto bare = level.branches.find(entry.name);
  return {bare == level.branches.end() ? nullptr : &bare->second, By::key};
}

// Returns the key part for an entry: its value, or the pattern if all values that match it share one count.
std::string_view EnvoyRules::counted_value(const Step& step, const Attribute& entry) {
  if (step.by != By::wildcard || !step.branch->share_threshold) return entry.value;
  const std::string_view pattern = step.branch->composite;
  const bool names_key =
      pattern.size() > entry.name.size() && pattern.starts_with(entry.name) && pattern[entry.name.size()] == '_';
  return names_key ? pattern.substr(entry.name.size() + 1) : pattern;
}

void EnvoyRules::find(std::string_view domain, std::span<const Attribute> entries, EnvoyFound& out) const {
  out.rule = nullptr;
  out.key.clear();
  out.stat.clear();
  const auto at = domains_.find(domain);
  if (at == domains_.end() || entries.empty() || entries.size() > kEntriesMax) return;
  base::Few<Step, kEntriesMax> steps;
  const Level* level = at->second.get();
  for (const Attribute& entry : entries) {
    if (level == nullptr) return;
    steps.add(step(*level, entry, out.key));
    const Branch* branch = steps[steps.size() - 1].branch;
    if (branch == nullptr) return out.key.clear();
    level = branch->below.get();
  }
  out.key.clear();
  out.rule = steps[steps.size() - 1].branch->rule;
  if (out.rule == nullptr) return;
  write_stat(entries, steps.all(), out);
  if (out.rule->said.unlimited) return;
  out.key.assign(1, base::kEnvoyKeys).append("envoy/").append(to_string(out.rule->said.unit)).append("/");
  base::append_sized(out.key, domain);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    base::append_sized(out.key, entries[i].name);
    base::append_sized(out.key, counted_value(steps[i], entries[i]));
  }
  if (out.key.size() > kPlainKeyMax) out.key = base::kEnvoyKeys + ("envoy/sha256:" + base::hex(base::sha256(out.key)));
}

// Writes the statistic name of the reference service if it contains values of the request.
void EnvoyRules::write_stat(std::span<const Attribute> entries, std::span<const Step> steps, EnvoyFound& out) {
  const auto names_value = [&](const Step& step) {
    const bool is_shared = step.by == By::wildcard && step.branch->share_threshold;
    return step.branch->value_to_metric && step.by != By::value && !is_shared;
  };
  if (!out.rule->detailed_metric && std::ranges::none_of(steps, names_value)) return;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.stat += '.';
    const Step& step = steps[i];
    if (!out.rule->detailed_metric && !names_value(step)) {
      out.stat += step.branch->composite;
      continue;
    }
    out.stat.append(entries[i].name);
    if (const std::string_view value = counted_value(step, entries[i]); !value.empty()) {
      out.stat.append("_").append(value);
    }
  }
  out.stat = as_label(out.stat);
}

}  // namespace weir::envoy
