// Pipelined commands, parsed and answered until the bytes run out. See resp_session.h.
#include "server/resp_session.h"

#include "resp/request.h"
#include "server/resp_commands.h"

namespace weir {
namespace {

std::string_view last_words(GiveUp why) {
  switch (why) {
    case GiveUp::too_slow:
      break;
    case GiveUp::no_room:
      return "ERR all connections together hold as much memory as they may; try again shortly";
    case GiveUp::too_crowded:
      return "ERR max number of clients reached";
  }
  return "ERR the request was not finished in time";
}

class RespSession final : public Session {
 public:
  RespSession(Limiter& limiter, std::string_view server_version, std::int64_t id)
      : limiter_(limiter), server_version_(server_version) {
    client_.id = id;
  }

  Progress consume(std::string_view input, Turn&, std::string& output) override {
    Progress progress;
    while (true) {
      if (output.size() >= kOutputMax) {
        progress.full = true;
        break;
      }
      const auto request = parser_.parse(input.substr(progress.consumed));
      if (request.status == resp::Status::need_more) break;
      resp::Writer out(output, client_.protocol);
      if (request.status == resp::Status::bad) {
        out.error("ERR " + request.reason);
        progress.close = true;
        break;
      }
      progress.consumed += request.consumed;
      ++progress.answered;
      if (request.args.empty()) continue;
      const AfterCommand after = run_command(request.args, server_version_, limiter_, client_, out);
      if (after == AfterCommand::go_on) continue;
      progress.close = true;
      break;
    }
    progress.phase = progress.consumed < input.size() ? Phase::body : Phase::idle;
    return progress;
  }

  void drain(std::string&) override {}

  void give_up(GiveUp why, std::string& output) override {
    resp::Writer(output, client_.protocol).error(last_words(why));
  }

  std::size_t held() const override { return 0; }  // a request is read where it lies, in the connection's buffer

 private:
  Limiter& limiter_;
  std::string_view server_version_;
  RespClient client_;
  resp::RequestParser parser_;
};

}  // namespace

std::unique_ptr<Session> make_resp_session(Limiter& limiter, std::string_view server_version, std::int64_t id) {
  return std::make_unique<RespSession>(limiter, server_version, id);
}

}  // namespace weir
