// `weir check`: asks a running server whether a request may pass, as a service would.
//
// Exit codes: 0 allowed, 1 no answer from the server, 2 invalid command line, 3 denied. One thread. Tested by
// tests/server/commands.sh.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/remote.h"
#include "cli/request_flags.h"
#include "protocol/seconds.h"

namespace weir::cli {
namespace {

constexpr int kDenied = 3;

// Such as `, retry in 35 s`; without a number, the other text.
std::string when(const char* what, const protocol::JsonValue& seconds, const char* otherwise) {
  return seconds.kind == protocol::JsonValue::Kind::number ? what + protocol::wait_text(seconds.number()) : otherwise;
}

void print(const protocol::JsonValue& answer, bool allowed) {
  std::printf("%s", allowed ? "allowed" : "denied");
  if (!answer.at("rule").text.empty()) std::printf(" by %s", answer.at("rule").text.c_str());
  if (answer.at("limit").kind == protocol::JsonValue::Kind::number) {
    std::printf(": %s of %s left", answer.at("remaining").text.c_str(), answer.at("limit").text.c_str());
    if (!allowed) std::printf("%s", when(", retry in ", answer.at("retry_after"), ", never passes").c_str());
    std::printf("%s", when(", full again in ", answer.at("reset_after"), ", never full again").c_str());
  } else if (!answer.at("reason").text.empty()) {
    std::printf(": %s", answer.at("reason").text.c_str());
  }
  std::printf("\n");
}

class CheckCommand {
 public:
  explicit CheckCommand(CLI::App& app);

  Result<int> run();

 private:
  Result<std::string> body();

  Remote server_{"--http", "127.0.0.1:8080"};
  RequestFlags request_;
  std::string key_, limit_;
  bool peek_ = false, json_ = false;
};

CheckCommand::CheckCommand(CLI::App& app) {
  request_.add(app);
  auto* const key = text_flag(app, "--key", key_, "TEXT", "Key that --limit applies to, instead of the rules");
  text_flag(app, "--limit", limit_, "LIMIT", "Limit of --key, such as 100/minute")->needs(key);
  app.add_flag("--peek", peek_, "Decide, but charge nothing");
  app.add_flag("--json", json_, "Print the server's JSON answer");
  server_.add(app, "HTTP address of the server");
}

Result<std::string> CheckCommand::body() {
  const auto request = request_.request();
  if (!request) return fail(request.error());
  return json_body({{"key", key_}, {"limit", limit_}},
                   [&](protocol::JsonWriter& json) { write_members(json, *request); });
}

Result<int> CheckCommand::run() {
  const auto body = this->body();
  if (!body) return fail(body.error());
  const auto answer = server_.call("POST", peek_ ? "/v1/check?peek" : "/v1/check", *body);
  if (!answer) return complain(answer.error().message, kCouldNot);
  const bool decided = answer->status == 200 || answer->status == 429;
  const auto value = protocol::parse_json(answer->body);
  if (json_) {
    std::fputs(answer->body.c_str(), stdout);
  } else if (decided && value) {
    print(*value, answer->status == 200);
  } else {
    const std::string said = value ? value->at("detail").text : "status " + std::to_string(answer->status);
    return complain("the server at " + server_.address() + " refused the request: " + said, kCouldNot);
  }
  return !decided ? kCouldNot : answer->status == 200 ? 0 : kDenied;
}

}  // namespace

const Command kCheckCommand{"check", "Check a request on a running server, as a service would", declare<CheckCommand>};

}  // namespace weir::cli
