// Why a command has no answer: kinds that callers can act on, so that nobody compares texts.
//
// An error that Redis replies with is told by its first word, or, in an error of a script of Redis 6, by the word of
// the command that failed in it. What is printed of it is bounded and holds no control characters. Pure; any thread.
// Tested by fault_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::redis {

enum class FaultKind : std::uint8_t {
  timeout,          // its deadline has passed
  disconnected,     // there is no connection, or it was lost
  crowded,          // too many commands or bytes are under way
  loading,          // the server reads its data
  busy,             // a script holds the server
  oom,              // the server may use no more memory
  readonly,         // a replica
  noauth,           // a password is missing or wrong
  noperm,           // the user may not
  misconf,          // the server cannot save, and refuses to be written to
  cluster_down,     // no one serves the slot
  master_down,      // a replica without its master
  moved_too_often,  // sent from node to node
  try_again,        // a slot is under way between two nodes
  noscript,         // a script is gone again as soon as it is loaded
  wrong_type,       // the key holds something else
  error,            // whatever else the server replied
};

std::string_view name_of(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::error;
  std::string_view text;  // for a log; holds as long as the call that brings it
  bool was_sent = false;  // some of it has left us: it may have been executed
  bool has_late = false;  // Receiver::on_late() follows
};

// Of the text of an error reply, without its dash.
FaultKind kind_of_error(std::string_view text);

// Whether it says that the user may not, be it to the command itself or, as an error of any kind, to one in a script.
bool is_forbidden(std::string_view text);

// No more than this of an error is told.
inline constexpr std::size_t kFaultTextMax = 240;
std::string fit_for_log(std::string_view text);

}  // namespace weir::redis
