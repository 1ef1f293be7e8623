// Plain recursion and plain loops; see slow_matcher.h.
#include "slow_matcher.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <map>

#include "policy_world.h"
#include "weir/verdict.h"

namespace weir::test {
namespace {

using Texts = std::vector<std::string>;

constexpr std::size_t kReadingsMax = 8;

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

Texts split(std::string_view text, std::string_view at) {
  Texts out(1);
  for (const char c : text) {
    if (at.find(c) == at.npos) {
      out.back() += c;
    } else {
      out.emplace_back();
    }
  }
  return out;
}

// %xx once; what is broken stays.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                           std::isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (!is_escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return out;
}

// ---- patterns

// A segment of a pattern as bytes, where a star that stands for anything is -1.
std::vector<int> letters_of(std::string_view segment) {
  std::vector<int> out;
  while (!segment.empty()) {
    const std::size_t size = segment[0] == '%' ? 3 : 1;
    if (segment[0] == '*') {
      out.push_back(-1);
    } else {
      out.push_back(static_cast<unsigned char>(unescaped(segment.substr(0, size))[0]));
    }
    segment.remove_prefix(size);
  }
  return out;
}

bool letters_match(const std::vector<int>& letters, std::size_t i, std::string_view text) {
  if (i == letters.size()) return text.empty();
  if (letters[i] < 0) {
    return letters_match(letters, i + 1, text) || (!text.empty() && letters_match(letters, i, text.substr(1)));
  }
  return !text.empty() && static_cast<unsigned char>(text[0]) == letters[i] &&
         letters_match(letters, i + 1, text.substr(1));
}

Texts segments_of(std::string_view path) {
  Texts out = split(path, "/");
  std::erase(out, "");
  return out;
}

// Each ** takes as few segments as it can, the first of them first.
bool segments_match(const Texts& pattern, std::size_t i, const Texts& path, std::size_t j,
                    std::map<std::string, std::string>& names) {
  if (i == pattern.size()) return j == path.size();
  if (pattern[i] == "**") {
    for (std::size_t k = j; k <= path.size(); ++k) {
      if (segments_match(pattern, i + 1, path, k, names)) return true;
    }
    return false;
  }
  if (j == path.size()) return false;
  if (pattern[i].starts_with('{')) {
    if (!segments_match(pattern, i + 1, path, j + 1, names)) return false;
    names[pattern[i].substr(1, pattern[i].size() - 2)] = path[j];
    return true;
  }
  return letters_match(letters_of(pattern[i]), 0, path[j]) && segments_match(pattern, i + 1, path, j + 1, names);
}

// ---- addresses

using Bytes = std::array<unsigned char, 16>;

std::optional<Bytes> address(std::string_view text) {
  const std::string whole(text);
  if (whole.find('\0') != whole.npos) return {};
  Bytes out{};
  if (inet_pton(AF_INET6, whole.c_str(), out.data()) == 1) return out;
  out[10] = out[11] = 0xff;
  if (inet_pton(AF_INET, whole.c_str(), out.data() + 12) == 1) return out;
  return {};
}

bool is_v4(const Bytes& bytes) {
  const Bytes mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0};
  return std::memcmp(bytes.data(), mapped.data(), 12) == 0;
}

bool bit(const Bytes& bytes, std::size_t i) { return (bytes[i / 8] >> (7 - i % 8) & 1) != 0; }

bool is_within(const Bytes& client, std::string_view range) {
  const std::size_t slash = range.find('/');
  const Bytes base = address(range.substr(0, slash)).value();
  std::size_t bits = is_v4(base) ? 32 : 128;
  if (slash != range.npos) bits = static_cast<std::size_t>(std::stoi(std::string(range.substr(slash + 1))));
  if (is_v4(base) != is_v4(client)) return false;
  const std::size_t first = is_v4(base) ? 96 : 0;
  for (std::size_t i = first; i < first + bits; ++i) {
    if (bit(base, i) != bit(client, i)) return false;
  }
  return true;
}

std::string network_text(const Bytes& client, const Dimension& dimension) {
  const std::size_t first = is_v4(client) ? 96 : 0, bits = is_v4(client) ? dimension.v4_bits : dimension.v6_bits;
  std::string out = is_v4(client) ? "4:" : "6:";
  for (std::size_t i = first; i < 128; ++i) out += i < first + bits && bit(client, i) ? '1' : '0';
  return out;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.erase(0, 1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.pop_back();
  return text;
}

bool is_all(std::string_view text, std::string_view others) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || others.find(c) != others.npos;
  });
}

bool is_port(const std::string& text) {
  if (text.starts_with('_')) return is_all(text.substr(1), "._-");
  const bool is_number = !text.empty() && text.size() <= 5 && text.find_first_not_of("0123456789") == text.npos;
  return is_number && std::stoi(text) <= 65535;
}

std::optional<Bytes> without_zone(const std::string& text) {
  const std::size_t percent = text.find('%');
  if (percent != text.npos && !is_all(text.substr(percent + 1), "-._~%")) return {};
  const auto out = address(text.substr(0, percent));
  return text.substr(0, percent).find(':') == text.npos ? std::nullopt : out;
}

// As headers and sockets write it.
std::optional<Bytes> node(const std::string& untrimmed) {
  const std::string text = trimmed(untrimmed);
  if (text.size() > 128) return {};
  const auto colons = std::ranges::count(text, ':');
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return {};
    const std::string rest = text.substr(end + 1);
    if (!rest.empty() && (rest[0] != ':' || !is_port(rest.substr(1)))) return {};
    return without_zone(text.substr(1, end - 1));
  }
  if (colons > 1) return without_zone(text);
  const std::size_t colon = text.find(':');
  if (colon != text.npos && !is_port(text.substr(colon + 1))) return {};
  return address(text.substr(0, colon));
}

// The elements of Forwarded, of which each has one `for`. Only what is well formed is looked at here.
std::optional<Bytes> forwarded_node(const std::string& element) {
  for (const std::string& pair : split(element, ";")) {
    const std::string one = trimmed(pair);
    if (!lowered(one).starts_with("for=")) continue;
    std::string value = one.substr(4);
    std::erase(value, '"');
    return node(value);
  }
  return {};
}

std::optional<Bytes> client_of(const Policy& policy, const weir::Request& request) {
  if (request.ip.empty()) return {};
  const auto peer = node(std::string(request.ip));
  const auto is_trusted = [&](const Bytes& one) {
    return std::ranges::any_of(policy.trusted_proxies, [&](const std::string& range) { return is_within(one, range); });
  };
  if (!peer || !is_trusted(*peer)) return peer;
  const bool is_list = policy.client_ip_header == "x-forwarded-for" || policy.client_ip_header == "forwarded";
  std::vector<std::optional<Bytes>> hops;  // from the client to us
  for (const Attribute& header : request.headers) {
    if (lowered(header.name) != policy.client_ip_header) continue;
    const Texts elements = is_list ? split(header.value, ",") : Texts{std::string(header.value)};
    for (const std::string& element : elements) {
      hops.push_back(policy.client_ip_header == "forwarded" ? forwarded_node(element) : node(element));
    }
  }
  if (!is_list) return hops.size() == 1 && hops[0] ? hops[0] : peer;
  if (policy.trusted_hops > 0) {
    const auto back = static_cast<std::size_t>(policy.trusted_hops);
    return back <= hops.size() && hops[hops.size() - back] ? hops[hops.size() - back] : peer;
  }
  Bytes client = *peer;
  while (!hops.empty() && hops.back() && is_trusted(client)) {
    client = *hops.back();
    hops.pop_back();
  }
  return client;
}

// ---- attributes

struct Slow {
  const Policy& policy;
  const weir::Request& request;
  SlowReading reading;
  std::optional<Bytes> client;

  // All values of an attribute, in their order, but for addresses and paths.
  Texts values(weir::AttributeKind kind, const std::string& name) const {
    Texts out;
    switch (kind) {
      case weir::AttributeKind::user:
        return {std::string(request.user)};
      case weir::AttributeKind::api_key:
        return {std::string(request.api_key)};
      case weir::AttributeKind::tenant:
        return {std::string(request.tenant)};
      case weir::AttributeKind::plan:
        return {std::string(request.plan)};
      case weir::AttributeKind::method:
        return {lowered(request.method)};
      case weir::AttributeKind::host:
        return {host()};
      case weir::AttributeKind::header:
        for (const Attribute& one : request.headers) {
          if (lowered(one.name) == name) out.emplace_back(one.value);
        }
        return out;
      case weir::AttributeKind::entry:
        for (const Attribute& one : request.entries) {
          if (one.name == name) out.emplace_back(one.value);
        }
        return out;
      case weir::AttributeKind::query:
        return parameters(name);
      default:
        return {};
    }
  }

  std::string host() const {
    std::string out = lowered(request.host);
    const std::size_t bracket = out.rfind(']');
    const std::size_t from = bracket == out.npos ? 0 : bracket;
    const std::size_t colon = out.find(':', from);
    if (colon != out.npos) out = out.substr(0, colon);
    while (!out.empty() && out.back() == '.') out.pop_back();
    return out;
  }

  Texts parameters(const std::string& name) const {
    Texts out;
    for (std::string part : split(reading.query, "&")) {
      if (part.empty()) continue;
      std::ranges::replace(part, '+', ' ');
      const std::size_t equals = part.find('=');
      if (unescaped(part.substr(0, equals)) != name) continue;
      out.push_back(equals == part.npos ? "" : unescaped(part.substr(equals + 1)));
    }
    return out;
  }

  bool holds(const Condition& condition) const {
    return std::ranges::any_of(condition.any_of, [&](const std::string& wanted) {
      if (condition.kind == weir::AttributeKind::path) return slow_pattern_matches(wanted, reading.path);
      if (condition.kind == weir::AttributeKind::ip) return client && is_within(*client, wanted);
      const Texts found = values(condition.kind, condition.name);
      return std::ranges::any_of(found,
                                 [&](const std::string& value) { return accepts(condition.kind, wanted, value); });
    });
  }

  static bool accepts(weir::AttributeKind kind, const std::string& wanted, const std::string& value) {
    if (value.empty()) return false;
    if (kind == weir::AttributeKind::method) return lowered(wanted) == value;
    if (kind != weir::AttributeKind::api_key || wanted == "*") return slow_glob(wanted, value);
    return std::ranges::any_of(known_keys(),
                               [&](const KnownKey& key) { return key.clear == value && key.hash == wanted; });
  }

  bool holds_all(const std::vector<Condition>& all) const {
    return std::ranges::all_of(all, [&](const Condition& condition) { return holds(condition); });
  }

  bool is_about(const weir::Rule& rule, std::int64_t now) const {
    if (rule.mode == Mode::off || (rule.expires_at && rule.expires_at->count() <= now)) return false;
    if (!holds_all(rule.match.all)) return false;
    if (!rule.match.entries.empty()) {
      Texts names;
      for (const Attribute& entry : request.entries) names.emplace_back(entry.name);
      if (names != rule.match.entries) return false;
    }
    return std::ranges::none_of(rule.match.none_of, [&](const auto& set) { return holds_all(set); });
  }

  // The pattern that paths are counted by: the first of the rule's own, or of the templates.
  std::string pattern_of(const weir::Rule& rule) const {
    const auto own = std::ranges::find(rule.match.all, weir::AttributeKind::path, &Condition::kind);
    const Texts& all = own == rule.match.all.end() ? policy.templates : own->any_of;
    const auto first =
        std::ranges::find_if(all, [&](const std::string& one) { return slow_pattern_matches(one, reading.path); });
    return first == all.end() ? "any" : *first;
  }

  std::optional<std::string> value_of(const weir::Rule& rule, const Dimension& dimension) const {
    switch (dimension.kind) {
      case weir::AttributeKind::path:
        return reading.path.empty() ? std::nullopt : std::optional(pattern_of(rule));
      case weir::AttributeKind::capture:
        return slow_capture(pattern_of(rule), reading.path, dimension.name);
      case weir::AttributeKind::ip:
        return client ? std::optional(network_text(*client, dimension)) : std::nullopt;
      case weir::AttributeKind::identity:
        for (const Dimension& who : policy.identity) {
          const auto value = value_of(rule, who);
          if (value) return std::to_string(static_cast<int>(who.kind)) + ' ' + part(who.name) + *value;
        }
        return {};
      default: {
        const std::string found = first_of(values(dimension.kind, dimension.name));
        return found.empty() ? std::nullopt : std::optional(found);
      }
    }
  }

  // That is not empty.
  static std::string first_of(const Texts& all) {
    const auto found = std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
    return found == all.end() ? "" : *found;
  }

  static std::string part(std::string_view text) { return std::to_string(text.size()) + ':' + std::string(text) + ' '; }

  std::optional<std::string> key_of(const weir::Rule& rule) const {
    std::string out = part(rule.name);
    for (const Dimension& one : rule.per) {
      out += "per " + std::to_string(static_cast<int>(one.kind)) + ' ' + part(one.name) + std::to_string(one.v4_bits) +
             '/' + std::to_string(one.v6_bits) + ' ';
    }
    for (const Dimension& dimension : rule.per) {
      const auto value = value_of(rule, dimension);
      if (!value) return {};
      out += part(*value);
    }
    return out;
  }

  std::int64_t cost_of(const RuleCost& cost) const {
    std::int64_t permits = cost.permits;
    const std::string found = cost.header.empty() ? "" : first_of(values(weir::AttributeKind::header, cost.header));
    const bool is_number = !found.empty() && found.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) {
      std::int64_t given = 0;
      for (const char c : found) given = std::min<std::int64_t>(cost.max, given * 10 + (c - '0'));
      if (given > 0) permits = given;
    }
    // Neither is ever negative but the request's own, so the sign of the product is that one's.
    if (permits == 0 || request.cost == 0) return 0;
    if (request.cost > INT64_MAX / permits) return INT64_MAX;
    return request.cost < INT64_MIN / permits ? INT64_MIN : permits * request.cost;
  }
};

bool names_path(const weir::Rule& rule) {
  return std::ranges::find(rule.match.all, weir::AttributeKind::path, &Condition::kind) != rule.match.all.end();
}

bool is_ban(const weir::Rule& rule) {
  return !rule.limits.empty() &&
         std::ranges::all_of(rule.limits, [](const RuleLimit& l) { return l.quota.permits == 0; });
}

bool is_preflight(const weir::Request& request) {
  if (lowered(request.method) != "options") return false;
  return request.headers.empty() || std::ranges::any_of(request.headers, [](const Attribute& header) {
           return lowered(header.name) == "access-control-request-method";
         });
}

std::string window_of(const weir::Rule& rule, const Quota& quota) {
  if (rule.limits.size() == 1) return {};
  std::string out = "window " + std::to_string(quota.period.count());
  if (quota.calendar) out += ' ' + std::to_string(static_cast<int>(quota.calendar->unit)) + ' ' + quota.calendar->zone;
  return out;
}

}  // namespace

bool slow_glob(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return slow_glob(pattern.substr(1), text) || (!text.empty() && slow_glob(pattern, text.substr(1)));
  }
  return !text.empty() && pattern[0] == text[0] && slow_glob(pattern.substr(1), text.substr(1));
}

bool slow_pattern_matches(std::string_view pattern, std::string_view normal_path) {
  std::map<std::string, std::string> names;
  return !normal_path.empty() && segments_match(segments_of(pattern), 0, segments_of(normal_path), 0, names);
}

std::optional<std::string> slow_capture(std::string_view pattern, std::string_view normal_path, std::string_view name) {
  std::map<std::string, std::string> names;
  if (normal_path.empty() || !segments_match(segments_of(pattern), 0, segments_of(normal_path), 0, names)) return {};
  const auto found = names.find(std::string(name));
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

namespace {

SlowBill bill_of(const Slow& slow, std::int64_t now, const IsEnforced& is_enforced) {
  const Policy& policy = slow.policy;
  SlowBill out;
  const bool is_skipped = std::ranges::any_of(
      policy.skip, [&](const std::string& pattern) { return slow_pattern_matches(pattern, slow.reading.path); });
  if (is_skipped) {
    out.reason = SlowBill::Reason::skipped;
    return out;
  }
  const auto enforces = [&](const weir::Rule& rule) {
    if (rule.mode != Mode::enforce || rule.percent == 0) return false;
    return rule.percent == 100 || is_enforced(rule, slow.reading);
  };
  for (const weir::Rule& rule : policy.rules) {
    const bool lets_pass = rule.unlimited && slow.is_about(rule, now) && slow.key_of(rule) && enforces(rule);
    if (!lets_pass || out.reason == SlowBill::Reason::exempt) continue;
    out.reason = SlowBill::Reason::exempt;
    out.rule = rule.name;
  }
  const bool is_exempt = out.reason == SlowBill::Reason::exempt;
  bool path_applied = false;
  for (const bool otherwise : {false, true}) {
    if (otherwise && path_applied) break;
    for (const weir::Rule& rule : policy.rules) {
      if (rule.match.otherwise != otherwise || !slow.is_about(rule, now)) continue;
      const auto key = slow.key_of(rule);
      const bool lacks = !key && rule.required && rule.mode == Mode::enforce && rule.percent == 100;
      if (!key && !lacks) continue;
      const bool applies = lacks || enforces(rule);
      path_applied = path_applied || (applies && names_path(rule));
      if (is_exempt && !is_ban(rule)) continue;  // bans hold even those who are exempt
      if (lacks) {
        if (out.reason != SlowBill::Reason::missing) out.rule = rule.name;
        out.reason = SlowBill::Reason::missing;
        continue;
      }
      for (const RuleLimit& limit : rule.limits) {
        (applies ? out.charges : out.shadows)
            .push_back({rule.name, limit.text, *key + window_of(rule, limit.quota), slow.cost_of(rule.cost)});
      }
      if (!applies || rule.limits.empty()) continue;
      out.counts_denied = out.counts_denied || rule.count_denied;
      if (out.reason == SlowBill::Reason::no_rule) out.reason = SlowBill::Reason::limits;
    }
  }
  return out;
}

// Adds those that are not there yet.
void add_new(const std::vector<SlowCharge>& from, std::vector<SlowCharge>& out) {
  for (const SlowCharge& one : from) {
    const bool is_known = std::ranges::any_of(out, [&](const SlowCharge& other) { return other == one; });
    if (!is_known) out.push_back(one);
  }
}

}  // namespace

std::optional<SlowBill> slow_bill(const Policy& policy, const weir::Request& request, std::int64_t now,
                                  const IsEnforced& is_enforced) {
  using Reason = SlowBill::Reason;
  SlowBill out;
  if (policy.skip_preflights && is_preflight(request)) {
    out.reason = Reason::skipped;
    return out;
  }
  const auto readings = slow_readings(request.path, policy.path_case_matters);
  if (!readings) return {};
  out.reason = Reason::ambiguous;
  if (readings->size() > kReadingsMax) return out;

  std::vector<SlowBill> bills;
  for (const SlowReading& reading : *readings) {
    bills.push_back(bill_of({policy, request, reading, client_of(policy, request)}, now, is_enforced));
    add_new(bills.back().charges, out.charges);
    add_new(bills.back().shadows, out.shadows);
    out.counts_denied = out.counts_denied || bills.back().counts_denied;
  }
  const auto first = [&](Reason reason) { return std::ranges::find(bills, reason, &SlowBill::reason); };
  const bool is_missing = first(Reason::missing) != bills.end();
  if (out.charges.size() > kChargesMax && !is_missing) {
    out.reason = bills.size() == 1 ? Reason::too_many : Reason::ambiguous;
  } else {
    for (const Reason reason : {Reason::missing, Reason::limits, Reason::no_rule, Reason::exempt, Reason::skipped}) {
      out.reason = reason;
      if (first(reason) != bills.end()) break;
    }
    if (out.reason == Reason::no_rule && !out.charges.empty()) out.reason = Reason::limits;
  }
  if (const auto found = first(out.reason); found != bills.end()) out.rule = found->rule;
  return out;
}

std::string Referee::difference(std::string_view what, const std::vector<SlowCharge>& slow,
                                const std::vector<SlowCharge>& other) {
  const auto shown = [](const std::vector<SlowCharge>& all) {
    std::string out;
    for (const SlowCharge& one : all)
      out += "\n    " + one.rule + ": " + one.quota + ", cost " + std::to_string(one.cost);
    return out.empty() ? "\n    none" : out;
  };
  const bool is_same = std::ranges::equal(slow, other, [](const SlowCharge& a, const SlowCharge& b) {
    return a.rule == b.rule && a.quota == b.quota && a.cost == b.cost;
  });
  if (!is_same) return std::string(what) + " are" + shown(other) + "\n  but should be" + shown(slow);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    const auto& [key, first] = *other_of_.try_emplace(slow[i].key, other[i].key).first;
    if (first != other[i].key) return "two keys for one count: " + key;
    const auto& [bytes, known] = *slow_of_.try_emplace(other[i].key, slow[i].key).first;
    if (known != slow[i].key) return "one key for two counts: " + known + " and " + slow[i].key;
  }
  return {};
}

std::string Referee::difference(const SlowBill& slow, const SlowBill& other) {
  constexpr std::string_view kReasons[] = {"no rule", "limits",   "skipped",  "exempt",
                                           "missing", "too many", "ambiguous"};
  const auto shown = [&](const SlowBill& bill) {
    return std::string(kReasons[static_cast<std::size_t>(bill.reason)]) + " by '" + bill.rule + "'";
  };
  if (slow.reason != other.reason || slow.rule != other.rule) {
    return "the reason is " + shown(other) + ", but should be " + shown(slow);
  }
  const bool is_charged = slow.charges.size() <= kChargesMax && slow.reason != SlowBill::Reason::ambiguous;
  if (!is_charged) return {};
  if (slow.counts_denied != other.counts_denied) return "whether denied requests are counted differs";
  const std::string enforced = difference("limits", slow.charges, other.charges);
  return enforced.empty() ? difference("limits in shadow", slow.shadows, other.shadows) : enforced;
}

}  // namespace weir::test
