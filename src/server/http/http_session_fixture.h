// A client of an HTTP session for tests: it uses a SessionPlayer on a ManualClock, with or without rules.
//
// One thread. Used by the tests of the HTTP routes.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/http/http_session.h"
#include "server/loop/session_fixture.h"

namespace weir::server::http {

// Requests and answers as text.
struct HttpTexts {
  static std::string request(std::string_view method, std::string_view target, std::string_view body = "",
                             std::string_view fields = "") {
    std::string out =
        std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n" + std::string(fields);
    if (!body.empty()) out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return out + "\r\n" + std::string(body);
  }
  static bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }
  // How often `part` is in the text.
  static std::size_t count(std::string_view text, std::string_view part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

class HttpClient : public testing::Test, protected HttpTexts {
 protected:
  // Applies a policy; until then there are no rules.
  void use_rules(std::string_view yaml) {
    auto policy = parse_policy(yaml, "test.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    gate = std::make_unique<Gate>(limiter);
    const auto applied = gate->apply(*std::move(policy));
    ASSERT_TRUE(applied) << applied.error().message;
    service.gate = gate.get();
  }

  void connect(std::string peer = "192.0.2.1") {
    player.reset();
    session = make_http_session(service, std::move(peer));
    player = std::make_unique<loop::SessionPlayer>(*session, limiter);
  }
  // The client leaves.
  void disconnect() {
    player.reset();
    session.reset();
  }

  std::string send(std::string_view bytes) {
    if (player == nullptr) connect();
    progress = player->feed(bytes);
    return player->take();
  }
  // The same, byte by byte.
  std::string send_slowly(std::string_view bytes) {
    if (player == nullptr) connect();
    for (std::size_t i = 0; i < bytes.size(); ++i) progress = player->feed(bytes.substr(i, 1));
    return player->take();
  }
  std::string post(std::string_view target, std::string_view body, std::string_view fields = "") {
    return send(request("POST", target, body, fields));
  }

  static int status(std::string_view answer) {
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(std::string(answer.substr(9, 3))) : 0;
  }
  static std::string body(std::string_view answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == answer.npos ? std::string() : std::string(answer.substr(end + 4));
  }
  // The value of a field, `absent` if there is none.
  static std::string field(std::string_view answer, std::string_view name) {
    const std::string line = "\r\n" + std::string(name) + ": ";
    const std::size_t begin = answer.substr(0, answer.find("\r\n\r\n") + 2).find(line);
    if (begin == answer.npos) return "absent";
    const std::size_t from = begin + line.size();
    return std::string(answer.substr(from, answer.find("\r\n", from) - from));
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{1'794'747'404'000'000});
  Limiter limiter{LimiterOptions{.clock = clock, .keys = 1000, .shared = loop::store_of_tests()}};
  std::unique_ptr<Gate> gate;
  HttpService service{limiter};
  std::unique_ptr<loop::Session> session;
  std::unique_ptr<loop::SessionPlayer> player;
  loop::Progress progress;
};

}  // namespace weir::server::http
