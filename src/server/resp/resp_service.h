// What RESP commands work with: the listener's configuration, and the round with its compiled limits.
//
// A round lasts from the first check that a session adds to the turn until the last session has written its answers.
// Its steps are kept here and not in each session, so that an idle connection takes almost no memory. Belongs to one
// loop and its thread. Tested by resp_session_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/loop/bounds.h"
#include "server/loop/limit_cache.h"
#include "server/loop/request_context.h"
#include "server/observe/denial_log.h"
#include "server/observe/wrong_secret.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::server::resp {

// One pending reply: to a check, in the format of its command, or a text that is already known.
struct RespStep {
  enum class Kind : std::uint8_t { cell, crab, map, text };
  std::uint32_t at = 0;  // the index in the turn; of a text, its end in `texts`
  Kind kind = Kind::cell;
};

struct RespCommand;

// The last command, by the bytes of its name. The next command is usually the same.
struct LastCommand {
  char name[16] = {};
  std::size_t size = 0;
  const RespCommand* command = nullptr;
};

struct RespService;

// A round and its buffers: of all sessions of a loop or, on fibers, of one session.
class RespContext final : public loop::RequestContext {
 public:
  enum class Caching : bool { little, all };

  // `with` must outlive it.
  explicit RespContext(RespService& with, Caching caching = Caching::little);
  void write_last_words(loop::GiveUp why, std::string& output) override;

  void end_round() {
    steps.clear();
    texts.clear();
    limits.end_round();
  }

  RespService& service;
  loop::LimitCache limits;
  LastCommand last{};
  std::vector<RespStep> steps{};  // of the round, in the order of the sessions
  std::string texts{};
  std::size_t sessions = 0;  // sessions that wait for the turn
};

// The listener's configuration, and what all its connections on a loop share.
struct RespService {
  Limiter& limiter;
  Gate* gate = nullptr;      // null: no rules
  std::string version{};     // of the server
  std::string password{};    // empty: no authentication
  Gate* counting = nullptr;  // counts limits that clients send; null: not counted
  loop::ListenerBounds bounds{};
  observe::ListenerDenials denials{};
  observe::WrongSecrets wrong{};                       // wrong passwords
  RespContext home{*this, RespContext::Caching::all};  // of all sessions, where none waits on a fiber
};

}  // namespace weir::server::resp
