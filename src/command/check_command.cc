// Calls POST /v1/check and prints the answer as a line. See check_command.h.
#include "command/check_command.h"

#include <cstdio>

#include "command/complain.h"
#include "protocol/problem.h"

namespace weir {

const char* const kCheckExamples =
    "  weir check --user 42 --path /api/search          by the server's rules; charges it, as a service would\n"
    "  weir check --ip 192.0.2.1 --path /login --peek   only looks\n"
    "  weir check --key user:42 --limit 100/minute      by a limit of its own\n"
    "  weir check --user 42 && echo may pass            0 yes, 3 no, 1 nobody answers\n"
    "\n";

namespace {

constexpr int kDenied = 3;

// The number as it is, such as `12.5 s`; otherwise `never`.
std::string seconds(const JsonValue& value) {
  return value.kind == JsonValue::Kind::number ? value.text + " s" : "never";
}

void print(const JsonValue& answer, bool allowed) {
  std::printf("%s", allowed ? "allowed" : "denied");
  if (!answer.at("rule").text.empty()) std::printf(" by %s", answer.at("rule").text.c_str());
  if (answer.at("limit").kind == JsonValue::Kind::number) {
    std::printf(": %s of %s left", answer.at("remaining").text.c_str(), answer.at("limit").text.c_str());
    if (!allowed) std::printf(", again in %s", seconds(answer.at("retry_after")).c_str());
    std::printf(", full in %s", seconds(answer.at("reset_after")).c_str());
  } else if (!answer.at("reason").text.empty()) {
    std::printf(": %s", answer.at("reason").text.c_str());
  }
  std::printf("\n");
}

}  // namespace

CheckCommand::CheckCommand(CLI::App& app) {
  check_ = app.add_subcommand("check", "Ask a running server whether a request may pass");
  request_.add(*check_);
  auto* const key = check_->add_option("--key", key_, "A key of your own, with --limit; no rules")->type_name("TEXT");
  check_->add_option("--limit", limit_, "Its limit: 100/minute")->type_name("QUOTA")->needs(key);
  check_->add_flag("--peek", peek_, "Only look: charge nothing");
  check_->add_flag("--json", json_, "The server's answer as it is");
  server_.add(*check_, "The server's HTTP port");
}

Result<std::string> CheckCommand::body() {
  auto members = request_.json_members();
  if (!members) return members;
  std::string out = "{" + *members;
  for (const auto& [name, value] : {std::pair{"key", &key_}, std::pair{"limit", &limit_}}) {
    if (value->empty()) continue;
    out.append(out.size() > 1 ? ",\"" : "\"").append(name).append("\":");
    append_json_text(out, *value);
  }
  return out + "}";
}

std::optional<int> CheckCommand::run() {
  if (!*check_) return std::nullopt;
  const auto body = this->body();
  if (!body) return complain(body.error().message, kNotUnderstood);
  const auto answer = server_.call("POST", peek_ ? "/v1/check?peek" : "/v1/check", *body);
  if (!answer) return complain(answer.error().message, kCouldNot);
  const bool decided = answer->status == 200 || answer->status == 429;
  const auto value = parse_json(answer->body);
  if (json_) {
    std::fputs(answer->body.c_str(), stdout);
  } else if (decided && value) {
    print(*value, answer->status == 200);
  } else {
    const std::string said = value ? value->at("detail").text : "status " + std::to_string(answer->status);
    return complain("the server at " + server_.address() + " refuses: " + said, kCouldNot);
  }
  return !decided ? kCouldNot : answer->status == 200 ? 0 : kDenied;
}

}  // namespace weir
