// One connection's conversation, without its socket: bytes in, bytes out.
//
// A connection hands over what has arrived and is told how much of it was used; answers are appended in
// order. That keeps every protocol testable byte by byte and lets the loop be replaced beneath it.
// A session belongs to one thread. Implemented by resp_session.cc and http_session.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

// No session adds to output that is already this long: it stops, and goes on when it is called again.
inline constexpr std::size_t kOutputMax = std::size_t{1} << 20;

// What a session waits for; the connection has a patience for each.
enum class Phase : std::uint8_t { idle, header, body };

struct Progress {
  std::size_t consumed = 0;
  std::size_t answered = 0;  // requests that were completed
  Phase phase = Phase::idle;
  bool close = false;  // once the output is written
  bool full = false;   // stopped because of kOutputMax: call again with the rest
};

// Why a connection ends before its client wanted it to.
enum class GiveUp : std::uint8_t {
  too_slow,     // a request was begun and not finished in time
  no_room,      // what all connections hold in memory is at its bound
  too_crowded,  // as many connections as may be are open
};

class Session {
 public:
  virtual ~Session() = default;

  // `input` is everything not consumed so far. Called again with the same beginning and more behind it.
  virtual Progress consume(std::string_view input, std::string& output) = 0;

  // The server is stopping: what is answered from now on says so, where the protocol can.
  virtual void drain() = 0;

  // The last words before the connection is closed.
  virtual void give_up(GiveUp why, std::string& output) = 0;

  // Bytes of a request that were consumed but are still kept.
  virtual std::size_t held() const = 0;

 protected:
  Session() = default;
  Session(const Session&) = default;
  Session& operator=(const Session&) = default;
};

}  // namespace weir
