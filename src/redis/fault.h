// Why a command has no reply: fault kinds that callers can act on, so that no caller compares texts.
//
// An error reply of Redis is classified by its first word. In an error of a script in Redis 6, it is the word of the
// command that failed in the script. Printed text is bounded and has no control characters. Pure; any thread may call
// it. Tested by fault_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::redis {

enum class FaultKind : std::uint8_t {
  timeout,             // its deadline has passed
  disconnected,        // no connection, or the connection was lost
  too_many_in_flight,  // too many commands or bytes are in flight
  loading,             // the server is loading its data
  busy,                // a script blocks the server
  oom,                 // the server has reached its memory limit
  readonly,            // the server is a replica
  noauth,              // a password is missing or wrong
  noperm,              // the user lacks the permission
  misconf,             // the server cannot save, and refuses writes
  cluster_down,        // no node serves the slot
  master_down,         // a replica that has no connection to its master
  moved_too_often,     // redirected too many times
  try_again,           // a slot is being moved between two nodes
  noscript,            // a script disappears again right after it is loaded
  wrong_type,          // the key has another type
  error,               // any other error reply
};

std::string_view name_of(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::error;
  std::string_view text;  // for a log; valid only during the callback
  bool was_sent = false;  // some bytes were sent, so the command may have been executed
  bool has_late = false;  // Receiver::on_late() follows
};

// Classifies the text of an error reply, without its dash.
FaultKind kind_of_error(std::string_view text);

// Whether the error says that the user lacks a permission, for the command itself or for one within a script.
bool is_forbidden(std::string_view text);

// Longer error texts are truncated to this length.
inline constexpr std::size_t kFaultTextMax = 240;
std::string fit_for_log(std::string_view text);

}  // namespace weir::redis
