// The top-level keys of a config: how they are read and printed. See fields.h and policy_reader.h. Checks that need
// the whole config are here too, such as how many limits apply to one request.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/ip_address.h"
#include "base/nearest.h"
#include "base/redis_url.h"
#include "policy/fields.h"
#include "policy/policy_reader.h"
#include "weir/verdict.h"

namespace weir::policy {
namespace {

constexpr std::size_t kProxiesMax = 10'000;
constexpr std::size_t kSkipMax = 1'000;
constexpr std::size_t kTemplatesMax = 10'000;
constexpr std::size_t kProblemsMax = 50;

void read_identity(Reader& reader, const Node& node, Policy& out) {
  out.identity.clear();
  read_dimensions(reader, node, out.identity);
  for (const Dimension& dimension : out.identity) {
    const bool is_of_rule = dimension.kind == weir::AttributeKind::identity ||
                            dimension.kind == weir::AttributeKind::capture ||
                            dimension.kind == weir::AttributeKind::path;
    if (is_of_rule)
      reader.wrong(node.at, "`identity` cannot be " + weir::to_string(dimension) + "; name user, api_key, ip ...");
  }
  if (out.identity.empty()) reader.wrong(node.at, "`identity` names no attribute; the default is [user, api_key, ip]");
}

std::optional<Node> write_identity(const Policy& policy) {
  if (policy.identity == Policy{}.identity) return {};
  return write_dimensions(policy.identity);
}

void read_trusted_proxies(Reader& reader, const Node& node, Policy& out) {
  reader.each(node, kProxiesMax, Empty::allowed, [&](const Node& one) {
    const auto text = reader.text(one, "an address range such as 10.0.0.0/8, or a list of ranges");
    if (!text) return;
    const auto range = base::parse_ip_range(*text);
    if (!range) return reader.wrong(one, "trusted_proxies", range.error());
    out.trusted_proxies.push_back(base::to_string(*range));
  });
}

void read_patterns(Reader& reader, const Node& node, std::size_t most, std::vector<std::string>& out) {
  reader.each(node, most, Empty::allowed, [&](const Node& one) { read_pattern(reader, one, out); });
}

void read_skip_paths(Reader& reader, const Node& node, Policy& out) { read_patterns(reader, node, kSkipMax, out.skip); }

constexpr Field<Policy> kSkipFields[] = {
    {"paths", read_skip_paths, write_member<Policy, &Policy::skip>},
    flag_row<Policy, &Policy::skip_preflights>("preflights"),
};

void read_skip(Reader& reader, const Node& node, Policy& out) {
  if (!node.is_map()) return read_skip_paths(reader, node, out);
  reader.fields(node, skip_fields(), "paths, or a map with `paths` and `preflights`", out);
}

std::optional<Node> write_skip(const Policy& policy) {
  if (policy.skip_preflights) return write_member<Policy, &Policy::skip>(policy);
  return write_fields(skip_fields(), policy);
}

constexpr std::string_view kPathCases[] = {"ignored", "kept"};
constexpr Words kPathCase{kPathCases, "ignored (the default: /API is /api) or kept"};

void read_path_case(Reader& reader, const Node& node, Policy& out) {
  read_word<Policy, &Policy::path_case_matters, kPathCase>(reader, node, out);
  reader.path_case_matters = out.path_case_matters;
}

void read_max_change(Reader& reader, const Node& node, Policy& out) {
  out.max_change = kMaxChangeOff;
  if (!node.is_scalar() || (node.text != "off" && node.text != "false")) {
    out.max_change = static_cast<int>(reader.whole(node, 1, 1'000'000).value_or(10));
  }
}

std::optional<Node> write_max_change(const Policy& policy) {
  if (policy.max_change == kMaxChangeOff) return text_node("off");
  return write_member<Policy, &Policy::max_change>(policy);
}

void read_envoy_algorithm(Reader& reader, const Node& node, EnvoyImport& out) {
  const auto text = reader.text(node, "fixed_window (the default), sliding_window, token_bucket ...");
  if (!text) return;
  const auto algorithm = parse_algorithm(*text);
  if (!algorithm) return reader.wrong(node, "algorithm", algorithm.error());
  if (*algorithm == Algorithm::concurrency) {
    return reader.wrong(
        node.at,
        "`algorithm`: it limits permits in flight, and Envoy's files limit requests per unit; write fixed_window");
  }
  out.algorithm = *algorithm;
}

constexpr Field<EnvoyImport> kImportFields[] = {
    {"envoy",
     [](Reader& r, const Node& n, EnvoyImport& e) {
       e.path = r.text(n, "a folder with the files of Envoy's rate limit service").value_or("");
     },
     write_member<EnvoyImport, &EnvoyImport::path>},
    {"algorithm", read_envoy_algorithm, write_member<EnvoyImport, &EnvoyImport::algorithm>},
    flag_row<EnvoyImport, &EnvoyImport::count_denied>("count_denied"),
};

void read_import(Reader& reader, const Node& node, Policy& out) {
  reader.fields(node, import_fields(), "a map with `envoy`", out.envoy);
  if (node.is_map() && Reader::member(node, "envoy") == nullptr) {
    reader.wrong(node.at, "`import` names no files; write import: {envoy: FOLDER}");
  }
}

std::optional<Node> write_import(const Policy& policy) {
  if (policy.envoy.path.empty()) return {};
  return write_fields(import_fields(), policy.envoy);
}

void read_store(Reader& reader, const Node& node, Policy& out) {
  constexpr std::string_view kWanted =
      "memory, or a Redis: redis://host, rediss://host, redis+sentinel://a,b,c/name, redis+cluster://a,b,c";
  const auto text = reader.text(node, kWanted);
  if (!text) return;
  const bool is_redis = text->starts_with("redis") && text->find("://") != text->npos;
  if (!is_redis && *text != "memory") return reader.wrong_kind(node, kWanted);
  if (has_password(*text)) {
    return reader.wrong(node.at,
                        "`store`: the address contains a password, which everyone who reads this config would see; "
                        "write it into a file: redis://weir@host?password_file=/etc/weir/redis.pass");
  }
  if (const auto target = base::redis::parse_url(*text); is_redis && !target) {
    return reader.wrong(node.at, "`store`: " + target.error().message);
  }
  out.store = *text;
}

// Bounds the limits that apply to every request: this is reported when the config is read, not when a request comes.
void check_charges(Reader& reader, const Policy& policy, Position at) {
  std::size_t charges = 0;
  for (const Rule& rule : policy.rules) {
    if (rule.mode != Mode::enforce || !(rule.match == Match{})) continue;
    std::size_t most = rule.limits.size();
    for (const PlanTier& tier : rule.tiers) most = std::max(most, tier.limits.size());
    charges += most;
  }
  if (charges > kChargesMax) {
    reader.wrong(at, "rules without a `match` apply " + std::to_string(charges) + " limits to every request; at most " +
                         std::to_string(kChargesMax) + " can be charged at once");
  }
}

// The index does not cover patterns with two `**`: each request may have to be matched against each of them.
void check_patterns(Reader& reader, const Policy& policy, Position at) {
  constexpr std::size_t kHardMax = 100;
  const auto is_hard = [](const std::string& text) { return text.find("**") != text.rfind("**"); };
  std::size_t hard = static_cast<std::size_t>(std::ranges::count_if(policy.skip, is_hard)) +
                     static_cast<std::size_t>(std::ranges::count_if(policy.templates, is_hard));
  for (const Rule& rule : policy.rules) {
    for (const Condition& condition : rule.match.all) {
      if (condition.kind != weir::AttributeKind::path) continue;
      hard += static_cast<std::size_t>(std::ranges::count_if(condition.any_of, is_hard));
    }
  }
  if (hard > kHardMax) {
    reader.wrong(at, std::to_string(hard) + " path patterns have more than one `**`; at most " +
                         std::to_string(kHardMax) + " may, because Weir compares every request with each of them");
  }
}

void read_rules(Reader& reader, const Node& node, Policy& out) {
  if (!node.is_list() || node.items.empty()) return reader.wrong_kind(node, "a list of at least one rule");
  if (node.items.size() > kRulesMax) {
    return reader.wrong(node.at, "there are " + std::to_string(node.items.size()) + " rules; at most " +
                                     std::to_string(kRulesMax) + " are allowed");
  }
  std::map<std::string, Position> seen;
  for (const Node& item : node.items) {
    auto rule = read_rule(reader, item);
    if (!rule) continue;
    const auto [first, is_new] = seen.try_emplace(rule->name, rule->at);
    if (!is_new && !rule->name.empty()) {
      reader.wrong(rule->at, "a second rule is called " + base::in_quotes(rule->name) + ", first used in line " +
                                 std::to_string(first->second.line) +
                                 "; give each rule its own name, because counts belong to it");
    }
    out.rules.push_back(*std::move(rule));
  }
  resolve_plans(reader, out);
  check_charges(reader, out, node.at);
  check_patterns(reader, out, node.at);
}

std::optional<Node> write_rules(const Policy& policy) {
  if (policy.rules.empty()) return {};
  Node out{.kind = Node::Kind::list};
  for (const Rule& rule : policy.rules) out.items.push_back(write_fields(rule_fields(), RuleDraft{rule}));
  return out;
}

// `path_case` precedes the patterns, because it decides how they are parsed.
constexpr Field<Policy> kPolicyFields[] = {
    {"path_case", read_path_case, write_word<Policy, &Policy::path_case_matters, kPathCase>},
    {"identity", read_identity, write_identity},
    {"trusted_proxies", read_trusted_proxies, write_member<Policy, &Policy::trusted_proxies>},
    {"client_ip_header",
     [](Reader& r, const Node& n, Policy& p) {
       read_header_name(r, n, "the name of a header such as x-forwarded-for, forwarded or cf-connecting-ip",
                        p.client_ip_header);
     },
     write_member<Policy, &Policy::client_ip_header>},
    {"trusted_hops", read_whole<Policy, &Policy::trusted_hops, 0, 64>, write_member<Policy, &Policy::trusted_hops>},
    {"skip", read_skip, write_skip},
    {"templates", [](Reader& r, const Node& n, Policy& p) { read_patterns(r, n, kTemplatesMax, p.templates); },
     write_member<Policy, &Policy::templates>},
    {"max_change", read_max_change, write_max_change},
    {"answers", [](Reader& r, const Node& n, Policy& p) { read_answers(r, n, p.answers); },
     [](const Policy& p) -> std::optional<Node> {
       if (p.answers == AnswerStyle{}) return {};
       return write_fields(answer_fields(), p.answers);
     }},
    {"plans", [](Reader& r, const Node& n, Policy& p) { read_plans(r, n, p.plans); },
     [](const Policy& p) -> std::optional<Node> {
       if (p.plans == PlanPolicy{}) return {};
       return write_fields(plan_fields(), p.plans);
     }},
    {"import", read_import, write_import},
    {"store", read_store, write_member<Policy, &Policy::store>},
    {"rules", read_rules, write_rules},
};

}  // namespace

std::span<const Field<Policy>> policy_fields() { return kPolicyFields; }
std::span<const Field<Policy>> skip_fields() { return kSkipFields; }
std::span<const Field<EnvoyImport>> import_fields() { return kImportFields; }

namespace {

Policy read_root(const Node& root, std::vector<TextProblem>& problems, const Reader::Compile& compile) {
  Policy policy;
  Reader reader(problems, compile);
  reader.fields(root, policy_fields(), "a map with `rules`", policy);
  if (root.is_map() && Reader::member(root, "rules") == nullptr && Reader::member(root, "import") == nullptr) {
    reader.wrong(root.at, "the config has no `rules`, so it limits nothing; write at least one rule");
  }
  return policy;
}

// Prints each key on a line of its own, and each rule.
std::string print(Node& root) {
  FlowText out;
  root.at = {1, 1};
  for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
    out.add(root.items[i]);
    out.text += ": ";
    if (Node& value = root.items[i + 1]; root.items[i].text != "rules") {
      out.add(value);
    } else {
      value.at = {out.line + 1, 3};
      for (Node& rule : value.items) {
        out.end_line();
        out.text += "  - ";
        out.add(rule);
      }
    }
    out.end_line();
  }
  return std::move(out.text);
}

}  // namespace

Policy read_policy(std::string_view text, std::vector<TextProblem>& problems, const Reader::Compile& compile) {
  const Node root = read_yaml(text, problems);
  if (!problems.empty() && root.items.empty()) return {};
  if (root.is_scalar() && (root.is_null || root.text.empty())) {
    problems.push_back({{1, 1}, "the config is empty, so it limits nothing; write at least one rule"});
    return {};
  }
  return read_root(root, problems, compile);
}

Policy validate(const Policy& policy, std::vector<TextProblem>& problems, const Reader::Compile& compile) {
  Node root = write_fields(policy_fields(), policy);
  std::vector<TextProblem> without_positions;
  Policy checked = read_root(root, without_positions, compile);
  if (without_positions.empty()) return checked;
  print(root);  // gives each node its position
  return read_root(root, problems, compile);
}

std::string problem_lines(std::string_view name, std::vector<TextProblem> problems) {
  std::ranges::stable_sort(problems, {}, [](const TextProblem& p) { return std::tuple(p.at.line, p.at.column); });
  std::string out;
  for (std::size_t i = 0; i < std::min(problems.size(), kProblemsMax); ++i) {
    const TextProblem& problem = problems[i];
    out.append(out.empty() ? "" : "\n").append(name).append(":").append(std::to_string(problem.at.line));
    out.append(":").append(std::to_string(problem.at.column)).append(": ").append(problem.message);
  }
  if (problems.size() > kProblemsMax) {
    out.append("\n").append(name).append(": and ").append(std::to_string(problems.size() - kProblemsMax));
    out.append(" more");
  }
  return out;
}

}  // namespace weir::policy

namespace weir {

std::string to_yaml(const Policy& policy) {
  policy::Node root = policy::write_fields(policy::policy_fields(), policy);
  return policy::print(root);
}

}  // namespace weir
