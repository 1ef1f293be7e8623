// What a list of changes comes to: which of them hold now, and the policy that they make of that of the file.
//
// Nothing is stored but the list: a change holds if no later one that holds undoes it, and its time is not over. Of
// several that say the same thing the last one rules, so that undoing it brings the one before back. Pure; any thread.
// Tested by overlay_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "admin/change.h"
#include "weir/policy.h"
#include "weir/request.h"

namespace weir {

struct Standing {
  bool active = false;
  std::uint64_t undone_by = 0;  // 0: nobody
};

// Of each of them, in their order. Ids rise.
std::vector<Standing> standings(std::span<const Change> changes, Micros now);

// The changes that rule; the pointers go into the list.
struct Overlay {
  const Change* policy = nullptr;
  std::map<std::string, const Change*> modes{};  // by rule
  const Change* kill_switch = nullptr;
  const Change* log_level = nullptr;
  std::vector<const Change*> bans{};
  std::optional<Micros> next_end{};  // when the first of those that hold ends by itself

  bool kills() const { return kill_switch != nullptr && kill_switch->value == "on"; }
};
Overlay overlay_of(std::span<const Change> changes, Micros now);

// The policy with all that lies over it. An error if a text of a change is none any more.
Result<Policy> compose(Policy base, const Overlay& overlay);

using RuleNames = std::set<std::string, std::less<>>;
RuleNames names_of(const Policy& policy);
// The name, or one that begins like it.
std::string free_name(const std::string& wanted, const RuleNames& taken);

// Whether there is the rule that the change is about. If not, a mode waits for it.
bool has_rule_of(const RuleNames& names, const Change& change);

// What must not be read by whoever reads changes and logs: the beginning of its SHA-256.
std::string short_hash(std::string_view value);

// Why the rule of a ban would mean more than a client or so, and is to be asked for twice; empty: it would not.
std::string why_broad(const Match& match);

// The rule of a ban, as a policy of this one rule. An error if the request names nobody.
Result<std::string> ban_text(const std::string& rule, const Request& request, const Author& by, Micros until);

// enforce, shadow, off
std::optional<Mode> parse_mode(std::string_view text);
std::string_view to_string(Mode mode);

}  // namespace weir
