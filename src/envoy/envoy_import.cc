// Walks the descriptor trees and writes rules. See envoy_import.h.
#include "envoy/envoy_import.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/nearest.h"
#include "policy/dimension.h"

namespace weir::envoy {
namespace {

constexpr std::string_view kDomainEntry = "domain";
constexpr std::size_t kMatchEntriesMax = 16;  // of a match, including the domain
constexpr std::size_t kPerMax = 8;
constexpr std::size_t kValuesMax = 1'000;  // of one condition
constexpr std::size_t kNotMax = 16;
constexpr std::size_t kNameMax = 64;
constexpr std::size_t kEntryNameMax = 128;

bool is_entry_name(std::string_view key) {
  return !key.empty() && key.size() <= kEntryNameMax && std::ranges::all_of(key, policy::is_name_letter);
}

// One level on the path to a limit: the descriptor, and the values that sibling descriptors match first.
struct Level {
  const EnvoyDescriptor* descriptor = nullptr;
  std::vector<std::string> taken{};
};

// An exact value precedes a pattern, an earlier pattern precedes a later one, and all of them precede the key alone.
std::vector<std::string> taken_from(const std::vector<EnvoyDescriptor>& level, const EnvoyDescriptor& own) {
  std::vector<std::string> out;
  if (own.has_value() && !own.is_wildcard()) return out;
  bool is_before = true;
  for (const EnvoyDescriptor& other : level) {
    if (&other == &own) {
      is_before = false;
      continue;
    }
    if (other.key != own.key || !other.has_value()) continue;
    const bool is_pattern = other.is_wildcard();
    const bool takes = !own.has_value() || (is_pattern ? is_before : policy::glob_matches(own.value, other.value));
    if (takes) out.push_back(other.value);
  }
  return out;
}

class Importer {
 public:
  ImportedEnvoy run(const EnvoyConfig& config) {
    out_.policy.skip_preflights = false;  // an entry named `method` is not a browser's preflight
    for (const EnvoyDomain& domain : config.domains) {
      domain_ = &domain;
      walk(domain.descriptors);
    }
    return std::move(out_);
  }

 private:
  void note(Position at, const std::string& message) {
    out_.notes.push_back(domain_->file + ':' + std::to_string(at.line) + ':' + std::to_string(at.column) + ": " +
                         message);
  }

  void walk(const std::vector<EnvoyDescriptor>& descriptors) {
    for (const EnvoyDescriptor& descriptor : descriptors) {
      if (const std::string why = unsayable(descriptor); !why.empty()) {
        note(descriptor.at,
             why + "; it is not imported" + (descriptor.descriptors.empty() ? "" : ", nor are those below it"));
        continue;
      }
      way_.push_back({&descriptor, taken_from(descriptors, descriptor)});
      if (descriptor.limit) add_rule(descriptor, *descriptor.limit);
      walk(descriptor.descriptors);
      way_.pop_back();
    }
  }

  std::string unsayable(const EnvoyDescriptor& descriptor) const {
    if (descriptor.key.find('*') != descriptor.key.npos) return "rules name entries in full, and this key has a `*`";
    if (!is_entry_name(descriptor.key)) {
      return "the key " + base::in_quotes(descriptor.key, 80) +
             " cannot be the name of an entry in a rule: 1 to 128 letters, digits, '-', '_' and '.'";
    }
    const bool is_twice =
        std::ranges::any_of(way_, [&](const Level& l) { return l.descriptor->key == descriptor.key; });
    if (is_twice || descriptor.key == kDomainEntry) {
      return "a rule identifies entries by their names, and " + base::in_quotes(descriptor.key, 80) + " appears twice";
    }
    if (way_.size() + 2 > kMatchEntriesMax) return "rules match at most 15 entries of a descriptor";
    return {};
  }

  void add_rule(const EnvoyDescriptor& descriptor, const EnvoyLimit& limit) {
    Rule rule{.name = name_of(limit), .reason = domain_->file + ':' + std::to_string(descriptor.at.line)};
    Condition domain{.kind = AttributeKind::entry, .name = std::string(kDomainEntry), .any_of = {domain_->name}};
    rule.match.all.push_back(std::move(domain));
    rule.match.entries.emplace_back(kDomainEntry);
    for (const Level& level : way_) add_level(level, rule);
    std::ranges::sort(rule.match.all, {}, &Condition::name);
    if (rule.per.size() > kPerMax || rule.match.none_of.size() > kNotMax) {
      return note(descriptor.at,
                  "a rule counts by at most 8 entries, and excludes at most 16,000 values; it is not imported");
    }
    if (limit.unlimited) {
      rule.unlimited = true;
      rule.per.clear();
    } else {
      const std::string text = std::to_string(limit.requests_per_unit) + '/' + std::string(to_string(limit.unit));
      rule.limits.push_back({*parse_quota(text, Algorithm::fixed_window), text});
      if (descriptor.shadow_mode) rule.mode = Mode::shadow;
    }
    note_rest(descriptor, limit);
    names_.insert(rule.name);
    out_.policy.rules.push_back(std::move(rule));
  }

  // Adds what the entry must and must not be, and whether its values are counted separately.
  static void add_level(const Level& level, Rule& rule) {
    const EnvoyDescriptor& descriptor = *level.descriptor;
    rule.match.entries.push_back(descriptor.key);
    if (descriptor.has_value()) rule.match.all.push_back({AttributeKind::entry, descriptor.key, {descriptor.value}});
    const bool is_apart = !descriptor.has_value() || (descriptor.is_wildcard() && !descriptor.share_threshold);
    if (is_apart) rule.per.push_back({.kind = AttributeKind::entry, .name = descriptor.key});
    for (std::size_t i = 0; i < level.taken.size(); i += kValuesMax) {
      const std::size_t end = std::min(level.taken.size(), i + kValuesMax);
      rule.match.none_of.push_back({{AttributeKind::entry,
                                     descriptor.key,
                                     {level.taken.begin() + static_cast<std::ptrdiff_t>(i),
                                      level.taken.begin() + static_cast<std::ptrdiff_t>(end)}}});
    }
  }

  void note_rest(const EnvoyDescriptor& descriptor, const EnvoyLimit& limit) {
    if (descriptor.quota_mode && !limit.unlimited) {
      note(descriptor.at,
           "rules have no quota_mode: this limit denies on its own, not only when all quota_mode limits are exceeded");
    }
    if (!limit.replaces.empty()) {
      std::string names;
      for (const std::string& name : limit.replaces)
        names.append(names.empty() ? "" : ", ").append(base::in_quotes(name, 80));
      note(limit.at, "rules have no `replaces`: where this limit applies, " + names +
                         (limit.replaces.size() > 1 ? " also apply" : " also applies"));
    }
    if (descriptor.has_metadata) note(descriptor.at, "rules have no metadata: Weir sends none to Envoy");
  }

  // Returns the limit's name in the file, or else its path in the tree: edge/user/path_-api-.
  std::string name_of(const EnvoyLimit& limit) const {
    std::string name = limit.name;
    if (name.empty()) {
      name = domain_->name;
      for (const Level& level : way_) name += '/' + level.descriptor->composite();
    }
    for (char& c : name) {
      if (!policy::is_name_letter(c) && c != ':' && c != '/') c = '-';
    }
    name.resize(std::min(name.size(), kNameMax));
    std::string out = name;
    for (std::size_t n = 2; names_.contains(out); ++n) {
      const std::string number = '-' + std::to_string(n);
      out = name.substr(0, kNameMax - number.size()) + number;
    }
    return out;
  }

  ImportedEnvoy out_;
  const EnvoyDomain* domain_ = nullptr;
  std::vector<Level> way_;
  std::set<std::string> names_;
};

}  // namespace

ImportedEnvoy import_envoy(const EnvoyConfig& config) { return Importer{}.run(config); }

std::string_view envoy_differences() {
  return
      R"(How Weir differs on purpose from the reference service, envoyproxy/ratelimit.

With its files as they are (weir serve --envoy), and with rules:
  - Weir charges nothing for a denied request: it decides over all descriptors at once, and charges all or none. The
    reference charges every descriptor, so it never admits clients that keep sending. The answer to a denied
    request shows what remains without it, and hits_addend: 0 asks whether one more hit would pass. With
    --envoy-count-denied, or `count_denied: true` of a rule, a denied request uses up what is left. Usage that Envoy
    reports at the end of a stream (apply_on_stream_done) needs this: otherwise Weir denies usage that does not fit,
    and a limit that is charged only that way never becomes full.
  - A limit in shadow_mode, or in quota_mode while another limit has capacity left, is not charged beyond its limit.
  - Counter names keep keys and values separate: `a_b` with `c` never shares a counter with `a` with `b_c`. An
    override in a request has its own count, separate from the limit of the files.
  - Weir refuses an override without a unit. Such an override brings the reference down.
  - Weir limits the size of what it reads, and the number of series that detailed_metric and value_to_metric add.
  - Weir refuses a key that is twice in one map, a second document in one file, and YAML tags. A bad file changes
    nothing, and Weir reports every error at once, with its place and the fix.

With rules (weir import envoy), also:
  - You can choose the algorithm: with `algorithm: sliding_window`, no client gets twice the limit around the end of
    a window. Imported rules use fixed_window, as the reference does.
  - Keys and values are compared separately: a descriptor `a_b` without a value does not match the entry `a` with `b`.
  - A rule does not count an entry with an empty value.
  - Two equal descriptors in one request are charged once.
  - A limit in shadow_mode is counted, but clients do not see it. Answers show the name of the rule.
  - An override applies in every domain.
)";
}

}  // namespace weir::envoy
