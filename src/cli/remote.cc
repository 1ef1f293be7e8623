// Calls a server, and reports what to do if that fails. See remote.h.
#include "cli/remote.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/text.h"
#include "cli/flags.h"
#include "control/config_file.h"

namespace weir::cli {
namespace {

constexpr std::string_view kTlsWords = "This port speaks TLS";  // the server's answer to plain HTTP on a TLS port
constexpr std::size_t kAnswerMax = std::size_t{64} << 20;

}  // namespace

void Remote::add(CLI::App& app, const char* about) {
  text_flag(app, option_.c_str(), address_, "ADDR", about);
  text_flag(app, "--tls-ca", tls_.ca, "FILE",
            "CA of the server's certificate, if ADDR begins with https://; default: the system's CAs");
  auto* const certificate =
      text_flag(app, "--tls-cert", tls_.certificate, "FILE", "Client certificate, if the server requires one");
  auto* const key = text_flag(app, "--tls-key", tls_.key, "FILE", "Private key of the client certificate");
  key->needs(certificate);
  certificate->needs(key);
}

void Remote::add_token(CLI::App& app) {
  text_flag(app, "--token-file", token_file_, "FILE", "Token of the admin API, if the server requires one");
}

void Remote::add_admin(CLI::App& app) {
  add(app, "Admin API address of the server");
  add_token(app);
  app.add_flag("--json", json_, "Print the server's JSON answer");
}

CLI::App* Remote::add_subcommand(CLI::App& app, const char* name, const char* about, Run run) {
  app.require_subcommand(1);
  CLI::App* const one = app.add_subcommand(name, about);
  add_admin(*one);
  subcommands_.emplace_back(one, std::move(run));
  return one;
}

Result<int> Remote::run() const {
  const auto given = std::ranges::find_if(subcommands_, [](const auto& one) { return one.first->parsed(); });
  return given->second();
}

bool Remote::is_on_this_machine() const {
  const auto where = base::parse_endpoint(address_);
  return where && weir::base::is_on_this_machine(*where);
}

Result<net::HttpAnswer> Remote::call(std::string_view method, std::string_view target, std::string_view body) const {
  const auto where = base::parse_endpoint(address_);
  if (!where) return fail(ErrorCode::invalid_argument, option_ + ": " + where.error().message);
  std::string request = std::string(method) + " " + std::string(target) + " HTTP/1.1\r\nHost: ";
  request += where->host.empty() ? "localhost" : base::to_string(*where);
  request += "\r\nConnection: close\r\n";
  if (!token_file_.empty()) {
    const auto token = control::read_secret(token_file_);
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
  const std::string cannot_ask = "cannot query the server at " + base::to_string(*where) + ": ";
  if (!answer) return fail(answer.error().code, cannot_ask + answer.error().message);
  if (answer->status == 400 && answer->body.starts_with(kTlsWords)) {
    return fail(ErrorCode::unavailable,
                cannot_ask + "this port speaks TLS; write " + option_ + " https://" + base::to_string(*where));
  }
  return answer;
}

Result<net::HttpAnswer> Remote::talk(const base::Endpoint& server, std::string request) const {
  net::HttpClientCall call{.server = server,
                           .request = std::move(request),
                           .answer_max = kAnswerMax,
                           .timeout = timeout_,
                           .is_timeout_per_step = true};
  std::shared_ptr<const net::TlsContext> tls;
  if (address_.starts_with("https://")) {
    auto loaded = net::load_tls(tls_, "--tls-", " ");
    if (!loaded) return fail(loaded.error());
    tls = *std::move(loaded);
    call.tls = tls.get();
  }
  auto answer = net::call_http(call);
  if (answer) return answer;
  std::string& why = answer.error().message;
  if (why.find("certificate is not trusted") != why.npos) {
    why += "; name its CA with --tls-ca FILE";
  } else if (why.find("http://") == why.npos) {
    why += ". If weir serve runs at another address, use " + option_ + " ADDR";
  }
  return answer;
}

Result<void> Remote::get(std::initializer_list<std::pair<std::string_view, protocol::JsonValue*>> answers) const {
  for (const auto& [target, answer] : answers) {
    auto value = json("GET", target, {});
    if (!value) return fail(std::move(value.error()));
    *answer = *std::move(value);
  }
  return {};
}

Result<protocol::JsonValue> Remote::json(std::string_view method, std::string_view target,
                                         std::string_view body) const {
  const auto answer = call(method, target, body);
  if (!answer) return fail(answer.error());
  auto value = protocol::parse_json(answer->body);
  if (answer->status == 200 && value) return value;
  std::string said = value ? value->at("detail").text : std::string();
  if (said.empty()) said = "status " + std::to_string(answer->status);
  if (answer->status == 401) said += "; name the token with --token-file FILE";
  return fail(ErrorCode::unavailable, "the server at " + address_ + " refused the request: " + said);
}

Result<int> Remote::print(const Call& call, const std::function<std::string(const protocol::JsonValue&)>& words) const {
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
  const auto value = call.code ? protocol::parse_json(answer->body) : Result<protocol::JsonValue>{};
  return call.code && value ? call.code(*value) : 0;
}

void write_texts(protocol::JsonWriter& json, std::initializer_list<JsonText> texts) {
  for (const auto& [name, value] : texts) {
    if (!value.empty()) json.text(name, value);
  }
}

std::string json_body(std::initializer_list<JsonText> texts, const WriteMembers& further) {
  std::string out;
  protocol::JsonWriter json(out);
  json.begin_object();
  write_texts(json, texts);
  if (further) further(json);
  json.end_object();
  return out;
}

std::string reach_of(const protocol::JsonValue& answer) {
  const std::string& note = answer.at("note").text;
  return note.empty() ? note : note + "\n";
}

std::string fleet_note(const protocol::JsonValue& answer) {
  const protocol::JsonValue& nodes = answer.at("nodes");
  if (nodes.kind != protocol::JsonValue::Kind::number || nodes.whole() < 2) return {};
  return "counts of this server only; the fleet has " + nodes.text +
         " servers: query each with --admin and add the counts\n";
}

std::string in_query(std::string_view text) {
  constexpr std::string_view kPlain = "-._~";
  return base::percent_encoded(text,
                               [=](char c) { return base::is_letter_or_digit(c) || kPlain.find(c) != kPlain.npos; });
}

}  // namespace weir::cli
