// Determines which changes are in effect, and their result. See overlay.h.
#include "control/overlay.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ip_address.h"
#include "base/nearest.h"
#include "base/request_fields.h"
#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/key_name.h"
#include "policy/policy_reader.h"
#include "weir/limit.h"

namespace weir::control {
namespace {

constexpr std::array<std::string_view, 3> kModes = {"enforce", "shadow", "off"};

tl::unexpected<Error> wrong(std::string message) { return fail(ErrorCode::invalid_argument, std::move(message)); }

// A client that has one IPv6 address usually has its whole /64, so the ban covers that.
Result<std::string> banned_addresses(std::string_view text) {
  const auto address = base::parse_ip(text);
  if (!address) {
    auto range = base::parse_ip_range(text);
    if (!range) return wrong("\"ip\": " + range.error().message);
    return base::to_string(*range);
  }
  if (address->is_v4()) return base::to_string(*address);
  return base::to_string(base::truncated(*address, 32, 64)) + "/64";
}

// In a condition a `*` matches anything, and in a path braces do, too. A ban must match only its target.
Result<std::string> banned_value(AttributeKind kind, std::string_view name, std::string_view value) {
  if (kind == AttributeKind::ip) return banned_addresses(value);
  if (kind == AttributeKind::api_key) return "sha256:" + base::hex(base::sha256(value));
  if (kind == AttributeKind::path) value = value.substr(0, std::min(value.find_first_of("?#"), value.size()));
  const std::string_view special = kind == AttributeKind::path ? "*{}" : "*";
  if (value.find_first_of(special) == value.npos) return std::string(value);
  return wrong(
      "\"" + std::string(name) + "\": " + base::in_quotes(value) +
      " is a pattern that matches more than this value; ban by another attribute, or write a rule into the config");
}

Result<void> add_condition(Match& match, AttributeKind kind, std::string_view name, std::string_view value) {
  auto wanted = banned_value(kind, name.empty() ? policy::to_string(kind) : name, value);
  if (!wanted) return fail(std::move(wanted.error()));
  match.all.push_back({kind, std::string(name), {*std::move(wanted)}});
  return {};
}

Result<Match> banned(const Request& request) {
  Match match;
  for (std::size_t i = 0; i < base::kRequestFields.size(); ++i) {
    const std::string_view value = request.*base::kRequestFields[i].value;
    if (value.empty()) continue;
    const auto kind = static_cast<AttributeKind>(i);
    if (auto added = add_condition(match, kind, {}, value); !added) return fail(std::move(added.error()));
  }
  for (const auto& [kind, attributes] :
       {std::pair{AttributeKind::header, request.headers}, std::pair{AttributeKind::entry, request.entries}}) {
    for (const Attribute& one : attributes) {
      const std::string name = kind == AttributeKind::header ? base::lower(one.name) : std::string(one.name);
      if (auto added = add_condition(match, kind, name, one.value); !added) return fail(std::move(added.error()));
    }
  }
  if (match.all.empty())
    return wrong("the client to ban is missing: send \"ip\", \"user\", \"api_key\" or another attribute of requests");
  return match;
}

}  // namespace

std::optional<Mode> parse_mode(std::string_view text) {
  const auto* const mode = std::ranges::find(kModes, text);
  if (mode == kModes.end()) return {};
  return static_cast<Mode>(mode - kModes.begin());
}

std::string_view to_string(Mode mode) { return kModes[static_cast<std::size_t>(mode)]; }

std::vector<Standing> standings(std::span<const Change> changes, Micros now) {
  std::vector<Standing> out(changes.size());
  for (std::size_t i = changes.size(); i-- > 0;) {
    const Change& change = changes[i];
    out[i].active = out[i].undone_by == 0 && (!change.until || *change.until > now);
    if (!out[i].active || change.kind != ChangeKind::undo) continue;
    const auto target = std::ranges::lower_bound(changes.first(i), change.undoes, {}, &Change::id);
    if (target == changes.begin() + static_cast<std::ptrdiff_t>(i) || target->id != change.undoes) continue;
    out[static_cast<std::size_t>(target - changes.begin())].undone_by = change.id;
  }
  return out;
}

Overlay overlay_of(std::span<const Change> changes, Micros now) {
  Overlay overlay;
  const auto standing = standings(changes, now);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Change& change = changes[i];
    if (!standing[i].active) continue;
    if (change.until) overlay.next_end = std::min(*change.until, overlay.next_end.value_or(*change.until));
    switch (change.kind) {
      case ChangeKind::policy:
        overlay.policy = &change;
        break;
      case ChangeKind::mode:
        overlay.modes[change.rule] = &change;
        break;
      case ChangeKind::kill_switch:
        overlay.kill_switch = &change;
        break;
      case ChangeKind::ban:
        overlay.bans.push_back(&change);
        break;
      case ChangeKind::log_level:
        overlay.log_level = &change;
        break;
      case ChangeKind::reset:
      case ChangeKind::undo:
        break;
    }
  }
  return overlay;
}

RuleNames names_of(const Policy& policy) {
  RuleNames names;
  for (const Rule& rule : policy.rules) names.insert(rule.name);
  return names;
}

std::string free_name(const std::string& wanted, const RuleNames& taken) {
  std::string name = wanted;
  for (std::size_t n = 2; taken.contains(name); ++n) name = wanted + '-' + std::to_string(n);
  return name;
}

// A ban must take effect, so its rule is renamed if the policy, or another ban, has the name.
Result<Policy> compose(Policy base, const Overlay& overlay) {
  RuleNames names = names_of(base);
  for (const Change* ban : overlay.bans) {
    auto rules = parse_policy(ban->text, "ban of change " + std::to_string(ban->id));
    if (!rules) return fail(std::move(rules.error()));
    for (Rule& rule : rules->rules) {
      rule.name = free_name(rule.name, names);
      rule.by_hand = true;
      names.insert(rule.name);
      base.rules.push_back(std::move(rule));
    }
  }
  for (Rule& rule : base.rules) {
    const auto mode = overlay.modes.find(rule.name);
    if (mode != overlay.modes.end()) {
      rule.mode = parse_mode(mode->second->value).value_or(rule.mode);
      rule.percent = 100;
    }
    if (overlay.kills()) rule.mode = Mode::off, rule.percent = 100;
  }
  return base;
}

bool has_rule_of(const RuleNames& names, const Change& change) {
  return change.kind != ChangeKind::mode || names.contains(change.rule);
}

std::string short_hash(std::string_view value) {
  constexpr std::size_t kDigits = 16;
  return "sha256:" + base::hex(base::sha256(value)).substr(0, kDigits);
}

std::string request_text(const Request& request) {
  constexpr std::size_t kShown = 200, kNameShown = 100;
  std::string out;
  const auto add = [&out](AttributeKind kind, std::string_view name, std::string_view value) {
    const Dimension dimension{.kind = kind, .name = std::string(name.substr(0, kNameShown))};
    out.append(out.empty() ? "" : ", ").append(policy::attribute_text(dimension, value.substr(0, kShown)));
  };
  for (std::size_t i = 0; i < base::kRequestFields.size(); ++i) {
    const auto kind = static_cast<AttributeKind>(i);
    const std::string_view value = request.*base::kRequestFields[i].value;
    if (!value.empty())
      add(kind, {}, kind == AttributeKind::api_key ? "sha256:" + base::hex(base::sha256(value)) : std::string(value));
  }
  for (const Attribute& one : request.headers) {
    if (out.size() <= kReasonMax) add(AttributeKind::header, one.name, short_hash(one.value));
  }
  for (const Attribute& one : request.entries) {
    if (out.size() <= kReasonMax) add(AttributeKind::entry, one.name, one.value);
  }
  return out;
}

std::string why_broad(const Match& match) {
  constexpr unsigned kBitsV4 = 96 + 8, kBitsV6 = 32;
  constexpr std::array kOfClients = {AttributeKind::user,   AttributeKind::api_key, AttributeKind::ip,
                                     AttributeKind::tenant, AttributeKind::header,  AttributeKind::entry};
  bool names_client = false;
  for (const Condition& one : match.all) {
    names_client = names_client || std::ranges::find(kOfClients, one.kind) != kOfClients.end();
    if (one.kind != AttributeKind::ip) continue;
    for (const std::string& text : one.any_of) {
      const auto range = base::parse_ip_range(text);
      if (range && range->bits < (range->is_v4() ? kBitsV4 : kBitsV6)) {
        return "the range " + text + " is wider than /8 (IPv6: /32)";
      }
    }
  }
  return names_client ? "" : "it names no client, only attributes that many clients share";
}

Result<Policy> ban_policy(const std::string& rule, const Request& request, const Author& by, Micros until) {
  auto match = banned(request);
  if (!match) return fail(std::move(match.error()));
  Policy ban;
  ban.rules.push_back({.name = rule,
                       .match = *std::move(match),
                       .limits = {{.quota = *parse_quota("0/second"), .text = "0/second"}},
                       .owner = by.who,
                       .reason = by.reason,
                       .expires_at = until});
  std::vector<policy::TextProblem> problems;
  Policy checked = policy::validate(ban, problems, [](const Quota& quota) { return weir::compile(quota); });
  if (problems.empty()) return checked;
  return fail(ErrorCode::invalid_argument, policy::problem_lines("ban", std::move(problems)));
}

}  // namespace weir::control
