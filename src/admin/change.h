// One change that somebody made while the server ran, and the line of the journal that keeps it.
//
//   {"id":7,"at":"2026-11-16T07:00:00Z","who":"alice","from":"127.0.0.1","kind":"mode","what":"rule login: off",
//    "reason":"incident
//    12","until":null,"undoes":null,"rule":"login","value":"off","text":"","check":"5d41402abc4b2a76"}
//
// The last member is the beginning of the SHA-256 of all before it: a line that was damaged is known. A line that the
// servers of a fleet share has a member `link`, too. Do not change what is written: files outlive programs. Plain
// values; any thread. Tested by change_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir {

enum class ChangeKind : std::uint8_t { policy, mode, kill_switch, ban, reset, log_level, undo };
inline constexpr std::array<std::string_view, 7> kChangeKinds = {"policy", "mode",      "kill_switch", "ban",
                                                                 "reset",  "log_level", "undo"};
inline std::string_view to_string(ChangeKind kind) { return kChangeKinds[static_cast<std::size_t>(kind)]; }

inline constexpr std::size_t kWhoMax = 64;
inline constexpr std::size_t kReasonMax = 500;

// Who makes a change, from where, and why.
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
  std::optional<Micros> until{};  // then it ends by itself; whole seconds
  std::uint64_t undoes = 0;       // kind undo: the id of another
  std::string rule{};             // kinds mode, ban and reset: its name
  std::string value{};            // mode: enforce, shadow, off; kill_switch: on, off; log_level: its name
  std::string text{};             // policy: the text; ban: its rule, as a policy of this one rule
  std::string link{};             // what it was appended to in the fleet's list, by link_of(); empty: it never was
  friend bool operator==(const Change&, const Change&) = default;
};

// Of a change behind all that is before the last one: whoever has the same line with the same link has the same before
// it. No `last`: it is the first.
std::string link_of(const Change* last, Change change);

// With its newline.
std::string to_line(const Change& change);
// Without its newline. What is wrong with it is told in a few words.
Result<Change> parse_line(std::string_view line);
// Whether `text` is the beginning of a line as to_line() writes it, as far as its id and its time go: what a process
// that was killed leaves behind is, and what another program wrote is not.
bool may_begin_line(std::string_view text);

}  // namespace weir
