// One runtime change, and its line in the journal.
//
//   {"id":7,"at":"2026-11-16T07:00:00Z","who":"alice","from":"127.0.0.1","kind":"mode","what":"rule login: off",
//    "reason":"incident 12","until":null,
//    "undoes":null,"rule":"login","value":"off","text":"","check":"5d41402abc4b2a76"}
//
// The last member is the beginning of the SHA-256 of everything before it, which reveals a damaged line. A line that
// the servers of a fleet share also has a member `link`. Do not change the format: files outlive programs. Plain
// values; any thread. Tested by change_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir::control {

enum class ChangeKind : std::uint8_t { policy, mode, kill_switch, ban, reset, log_level, undo };
inline constexpr std::array<std::string_view, 7> kChangeKinds = {"policy", "mode",      "kill_switch", "ban",
                                                                 "reset",  "log_level", "undo"};
inline std::string_view to_string(ChangeKind kind) { return kChangeKinds[static_cast<std::size_t>(kind)]; }

inline constexpr std::size_t kWhoMax = 64;
inline constexpr std::size_t kReasonMax = 500;

// The author of a change: name, address and reason.
struct Author {
  std::string who = "admin";
  std::string from{};
  std::string reason{};
  friend bool operator==(const Author&, const Author&) = default;
};

struct Change {
  std::uint64_t id = 0;
  Micros at{0};
  Author by{};
  ChangeKind kind = ChangeKind::mode;
  std::string what{};             // for people: `rule login: off`
  std::optional<Micros> until{};  // when it ends by itself, in whole seconds
  std::uint64_t undoes = 0;       // kind undo: the id of the undone change
  std::string rule{};             // kinds mode, ban and reset: its name
  std::string value{};            // mode: enforce, shadow, off; kill_switch: on, off; log_level: the level
  std::string text{};             // policy: the text; ban: a policy with only its rule
  std::string link{};             // by link_of(), its predecessors in the fleet's list; empty: it was never in the list
  friend bool operator==(const Change&, const Change&) = default;
};

// A hash of the change and all changes before it, of which `last` is the last. If two servers have the same line with
// the same link, the lines before it are the same, too. No `last`: it is the first change.
std::string link_of(const Change* last, Change change);

// Ends with a newline.
std::string to_line(const Change& change);
// `line` has no newline. The error says in a few words what is wrong with it.
Result<Change> parse_line(std::string_view line);
// Whether `text` is the beginning of a line of to_line(), up to its id and time. This is true for the half line of a
// killed process, and false for a file of another program.
bool may_begin_line(std::string_view text);

}  // namespace weir::control
