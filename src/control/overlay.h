// Evaluates a list of changes: which of them are in effect, and the policy that results from the file and the
// changes.
//
// Only the list is stored. A change is in effect unless its time is over or an undo that is in effect names it. Of
// several changes to the same thing the last one takes precedence, so that undoing it restores the one before. Pure;
// any thread. Tested by overlay_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/change.h"
#include "weir/policy.h"
#include "weir/request.h"

namespace weir::control {

struct Standing {
  bool active = false;
  std::uint64_t undone_by = 0;  // 0: not undone
};

// For each change, in order. Ids increase.
std::vector<Standing> standings(std::span<const Change> changes, Micros now);

// The changes that take precedence; the pointers refer to the list.
struct Overlay {
  const Change* policy = nullptr;
  std::map<std::string, const Change*> modes{};  // by rule
  const Change* kill_switch = nullptr;
  const Change* log_level = nullptr;
  std::vector<const Change*> bans{};
  std::optional<Micros> next_end{};  // when the first of those in effect ends by itself

  bool kills() const { return kill_switch != nullptr && kill_switch->value == "on"; }
};
Overlay overlay_of(std::span<const Change> changes, Micros now);

// The policy with all changes applied. An error if the text of a change is no longer valid.
Result<Policy> compose(Policy base, const Overlay& overlay);

using RuleNames = std::set<std::string, std::less<>>;
RuleNames names_of(const Policy& policy);
// The wanted name, or the name with a suffix if it is taken.
std::string free_name(const std::string& wanted, const RuleNames& taken);

// Whether the change's rule exists. If not, a mode change waits for it.
bool has_rule_of(const RuleNames& names, const Change& change);

// Hides a secret from readers of changes and logs: the beginning of its SHA-256.
std::string short_hash(std::string_view value);

// The attributes of a request, as text for the journal. An API key appears as its hash, as everywhere, and so does a
// header, which may contain a secret.
std::string request_text(const Request& request);

// Why a ban's rule would match more than about one client, and therefore needs force; empty: it would not.
std::string why_broad(const Match& match);

// The rule of a ban, as a valid policy with only this rule. An error if the request has no attributes.
Result<Policy> ban_policy(const std::string& rule, const Request& request, const Author& by, Micros until);

// enforce, shadow, off
std::optional<Mode> parse_mode(std::string_view text);
std::string_view to_string(Mode mode);

}  // namespace weir::control
