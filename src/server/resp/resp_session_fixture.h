// A RESP session on a manual clock with helpers for its tests.
//
// Used by resp_session_test.cc, resp_limit_commands_test.cc and resp_transaction_test.cc, one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "resp/reply.h"
#include "resp/writer.h"
#include "server/loop/session_fixture.h"
#include "server/resp/resp_session.h"

namespace weir::server::resp {

class RespSessionTest : public testing::Test {
 protected:
  static constexpr Micros kStart{1'700'000'000'000'000};

  // Returns all answers to `bytes`; input that was not consumed is in `left`.
  std::string say(std::string_view bytes) {
    loop::SessionPlayer player(*session, limiter);
    progress = player.feed(bytes);
    left = player.pending();
    return player.take();
  }

  // The same as an array of bulks.
  std::string call(const std::vector<std::string_view>& args) {
    std::string request;
    weir::resp::append_command(request, args);
    return say(request);
  }

  // A reply as text: an error as it is, otherwise its integers and texts.
  std::string flat(const std::string& reply) {
    weir::resp::ReplyParser parser;
    const auto parsed = parser.parse(reply);
    std::string out = parsed.value.text;
    for (const auto& item : parsed.value.items) {
      out += item.type == weir::resp::Type::integer ? std::to_string(item.integer) : item.text;
      out += " ";
    }
    return out;
  }

  void at(std::int64_t ms) { clock->set(kStart + Micros{ms * 1000}); }

  // Times in milliseconds from the start.
  std::string throttle(std::int64_t at_ms, std::string_view args) {
    at(at_ms);
    return flat(say("CL.THROTTLE " + std::string(args) + "\r\n"));
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(kStart);
  Limiter limiter{LimiterOptions{.clock = clock, .keys = 1000, .shared = loop::store_of_tests()}};
  Gate gate{limiter};
  RespService service{.limiter = limiter, .gate = &gate, .version = "9.9.9"};
  std::unique_ptr<loop::Session> session = make_resp_session(service, 77);
  loop::Progress progress;
  std::string left;
};

}  // namespace weir::server::resp
