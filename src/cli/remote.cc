// A minimal HTTP/1.1 client, as far as weir servers need it. See remote.h.
#include "cli/remote.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "cli/complain.h"
#include "cli/wire.h"
#include "control/config_file.h"
#include "load_generator/target.h"

namespace weir {
namespace {

constexpr std::string_view kTlsWords = "This port speaks TLS";  // the server's answer to plain HTTP on a TLS port
constexpr std::size_t kAnswerMax = std::size_t{64} << 20;

// Splits head and body. The request asked the server to close, so the body ends where the input ends.
Result<RemoteAnswer> parse_answer(const std::string& text) {
  constexpr std::string_view kBegin = "HTTP/1.1 ";
  const std::size_t end = text.find("\r\n\r\n");
  RemoteAnswer answer;
  const char* const digits = text.data() + kBegin.size();
  if (!text.starts_with(kBegin) || end == text.npos ||
      std::from_chars(digits, digits + 3, answer.status).ec != std::errc{}) {
    return away(text.empty() ? "the server closed the connection" : "the answer is not HTTP");
  }
  answer.body = text.substr(end + 4);
  return answer;
}

}  // namespace

void Remote::add(CLI::App& app, const char* about) {
  app.add_option(option_, address_, about)->type_name("ADDR")->capture_default_str();
  app.add_option("--tls-ca", trust_.ca,
                 "CA of the server's certificate, if ADDR begins with https://; default: the system's CAs")
      ->type_name("FILE");
  auto* const certificate =
      app.add_option("--tls-cert", trust_.certificate, "Client certificate, if the server requires one")
          ->type_name("FILE");
  auto* const key = app.add_option("--tls-key", trust_.key, "Private key of the client certificate")
                        ->type_name("FILE")
                        ->needs(certificate);
  certificate->needs(key);
}

void Remote::add_token(CLI::App& app) {
  app.add_option("--token-file", token_file_, "Token of the admin API, if the server requires one")->type_name("FILE");
}

CLI::App* Remote::add_subcommand(CLI::App& app, const char* name, const char* about) {
  CLI::App* const one = app.add_subcommand(name, about);
  add(*one, "Admin API address of the server");
  add_token(*one);
  one->add_flag("--json", json_, "Print the server's JSON answer");
  return one;
}

bool Remote::is_on_this_machine() const {
  const auto where = load::parse_target(address_);
  return where && load::is_on_this_machine(*where);
}

Result<RemoteAnswer> Remote::call(std::string_view method, std::string_view target, std::string_view body) const {
  const auto where = load::parse_target(address_);
  if (!where) return fail(ErrorCode::invalid_argument, option_ + ": " + where.error().message);
  std::string request = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: ";
  request += where->host.empty() ? "localhost" : load::to_string(*where);
  request += "\r\nConnection: close\r\n";
  if (!token_file_.empty()) {
    const auto token = read_secret(token_file_);
    if (!token) return fail(token.error().code, "--token-file: " + token.error().message);
    request += "Authorization: Bearer " + *token + "\r\n";
  }
  if (const char* const who = std::getenv("USER"); who != nullptr && method != "GET") {
    std::string name = who;
    std::erase_if(name, [](char c) { return c <= ' ' || c > '~'; });
    if (!name.empty()) request += "X-Weir-Who: " + name.substr(0, 64) + "\r\n";
  }
  if (method != "GET") {
    request += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  }
  request.append("\r\n").append(body);
  auto answer = talk(*where, request);
  const std::string cannot_ask = "cannot query the server at " + load::to_string(*where) + ": ";
  if (!answer) return fail(answer.error().code, cannot_ask + answer.error().message);
  if (answer->status == 400 && answer->body.starts_with(kTlsWords)) {
    return away(cannot_ask + "this port speaks TLS; write " + option_ + " https://" + load::to_string(*where));
  }
  return answer;
}

Result<RemoteAnswer> Remote::talk(const load::Target& target, const std::string& request) const {
  const auto advise = [this](const Error& error) {
    return fail(error.code, error.message + ". If weir serve runs at another address, use " + option_ + " ADDR");
  };
  auto wire = Wire::open(target, patience_ms_);
  if (!wire) return advise(wire.error());
  if (address_.starts_with("https://")) {
    if (const auto secured = wire->secure(target.host, trust_); !secured) return fail(secured.error());
  }
  auto answer =
      wire->send(request).and_then([&] { return wire->receive_all(kAnswerMax); }).and_then([](const std::string& text) {
        return parse_answer(text);
      });
  if (!answer) return advise(answer.error());
  return answer;
}

Result<JsonValue> Remote::get(std::string_view target) const { return json("GET", target, {}); }

Result<JsonValue> Remote::json(std::string_view method, std::string_view target, std::string_view body) const {
  const auto answer = call(method, target, body);
  if (!answer) return fail(answer.error());
  auto value = parse_json(answer->body);
  if (answer->status == 200 && value) return value;
  std::string said = value ? value->at("detail").text : std::string();
  if (said.empty()) said = "status " + std::to_string(answer->status);
  if (answer->status == 401) said += "; name the token with --token-file FILE";
  return fail(ErrorCode::unavailable, "the server at " + address_ + " refused the request: " + said);
}

Result<int> Remote::print(const Call& call, const std::function<std::string(const JsonValue&)>& words) const {
  if (!json_) {
    const auto value = json(call.method, call.target, call.body);
    if (!value) return fail(value.error());
    std::fputs(words(*value).c_str(), stdout);
    return call.code ? call.code(*value) : 0;
  }
  const auto answer = this->call(call.method, call.target, call.body);
  if (!answer) return fail(answer.error());
  std::fputs(answer->body.c_str(), stdout);
  if (answer->status != 200) return kCouldNot;
  const auto value = call.code ? parse_json(answer->body) : Result<JsonValue>{};
  return call.code && value ? call.code(*value) : 0;
}

std::string reach_of(const JsonValue& answer) {
  const std::string& note = answer.at("note").text;
  return note.empty() ? note : note + "\n";
}

std::string fleet_note(const JsonValue& answer) {
  const JsonValue& nodes = answer.at("nodes");
  if (nodes.kind != JsonValue::Kind::number || nodes.whole() < 2) return {};
  return "counts of this server only; the fleet has " + nodes.text +
         " servers: query each with --admin and add the counts\n";
}

std::string in_query(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          std::string_view("-._~").find(c) != std::string_view::npos;
    if (is_plain) {
      out += c;
    } else {
      out.append(1, '%').append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  return out;
}

}  // namespace weir
