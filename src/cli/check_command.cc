// Calls POST /v1/check and prints the answer as a line. See check_command.h.
#include "cli/check_command.h"

#include <cstdio>

#include "cli/complain.h"
#include "protocol/problem.h"
#include "protocol/seconds.h"

namespace weir {

const char* const kCheckExamples =
    "  weir check --user 42 --path /api/search          decide by the server's rules, and charge\n"
    "  weir check --ip 192.0.2.1 --path /login --peek   decide, charge nothing\n"
    "  weir check --key user:42 --limit 100/minute      decide by this limit, without rules\n"
    "  weir check --user 42 && echo may pass            exit code 0: allowed, 3: denied, 1: no answer\n"
    "\n";

namespace {

constexpr int kDenied = 3;

// Such as `, retry in 35 s`; without a number, the other text.
std::string when(const char* what, const JsonValue& seconds, const char* otherwise) {
  return seconds.kind == JsonValue::Kind::number ? what + wait_text(seconds.number()) : otherwise;
}

void print(const JsonValue& answer, bool allowed) {
  std::printf("%s", allowed ? "allowed" : "denied");
  if (!answer.at("rule").text.empty()) std::printf(" by %s", answer.at("rule").text.c_str());
  if (answer.at("limit").kind == JsonValue::Kind::number) {
    std::printf(": %s of %s left", answer.at("remaining").text.c_str(), answer.at("limit").text.c_str());
    if (!allowed) std::printf("%s", when(", retry in ", answer.at("retry_after"), ", never passes").c_str());
    std::printf("%s", when(", full again in ", answer.at("reset_after"), ", never full again").c_str());
  } else if (!answer.at("reason").text.empty()) {
    std::printf(": %s", answer.at("reason").text.c_str());
  }
  std::printf("\n");
}

}  // namespace

CheckCommand::CheckCommand(CLI::App& app) {
  check_ = app.add_subcommand("check", "Check a request on a running server, as a service would");
  request_.add(*check_);
  auto* const key =
      check_->add_option("--key", key_, "Key that --limit applies to, instead of the rules")->type_name("TEXT");
  check_->add_option("--limit", limit_, "Limit of --key, such as 100/minute")->type_name("LIMIT")->needs(key);
  check_->add_flag("--peek", peek_, "Decide, but charge nothing");
  check_->add_flag("--json", json_, "Print the server's JSON answer");
  server_.add(*check_, "HTTP address of the server");
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
    return complain("the server at " + server_.address() + " refused the request: " + said, kCouldNot);
  }
  return !decided ? kCouldNot : answer->status == 200 ? 0 : kDenied;
}

}  // namespace weir
