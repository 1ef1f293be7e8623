// What all Redis clients of a loop share: the limiter, the rules, compiled limits, and the round.
//
// A round lasts from the first check that a session adds to the turn until the last session has written its answers.
// Its steps are kept here and not in each session, so that an idle connection takes almost no memory. Belongs to one
// loop and its thread. Tested by resp_session_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/admin/wrong_secret.h"
#include "server/http/inline_limits.h"
#include "server/loop/bounds.h"
#include "server/loop/desk.h"
#include "server/observe/denial_log.h"
#include "server/resp/resp_limits.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

// One pending reply: to a check, in the format of its command, or a text that is already known.
struct RespStep {
  enum class Kind : std::uint8_t { cell, crab, map, text };
  std::uint32_t at = 0;  // the index in the turn; of a text, its end in `texts`
  Kind kind = Kind::cell;
};

struct RespCommand;

// The last command, by the bytes of its name: the next one is usually the same.
struct LastCommand {
  char name[16] = {};
  std::size_t size = 0;
  const RespCommand* command = nullptr;
};

struct RespService {
  Limiter& limiter;
  Gate* gate = nullptr;      // null: no rules
  std::string version{};     // of the server
  std::string password{};    // empty: no authentication
  Gate* counting = nullptr;  // counts limits that clients send; null: not counted
  DoorBounds bounds{};
  DoorDenials denials{};

  InlineLimits quotas{};
  RespLimits limits{};
  LastCommand last{};
  // Counted for all connections of the loop; a desk uses those of `first`.
  RespService* first = nullptr;
  WrongSecrets wrong{};
  WrongSecrets& all_wrong() { return first == nullptr ? wrong : first->wrong; }
  std::vector<RespStep> steps{};  // of the round, in the order of the sessions
  std::string texts{};
  std::size_t sessions = 0;  // sessions that wait for the turn

  void end_round() {
    steps.clear();
    texts.clear();
    limits.end_round();
  }
};

// The buffers of one more round, beside that of the loop: on fibers each session has a round of its own.
class RespDesk final : public Desk {
 public:
  explicit RespDesk(RespService& first);  // `first` must outlive it
  void renew() override;
  void write_last_words(GiveUp why, std::string& output) override;

  RespService service;
};

}  // namespace weir
