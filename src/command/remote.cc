// HTTP/1.1 over a socket, the client's side: as much of it as servers of ours speak. See remote.h.
#include "command/remote.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "admin/config_file.h"
#include "command/complain.h"
#include "load/target.h"

namespace weir {
namespace {

constexpr std::string_view kTlsWords = "This port speaks TLS";  // to whoever speaks plain HTTP there
constexpr std::size_t kAnswerMax = std::size_t{64} << 20;

struct Socket {
  explicit Socket(int descriptor) : number(descriptor) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() { ::close(number); }
  int number;
};

tl::unexpected<Error> away(const std::string& why) { return fail(ErrorCode::unavailable, why); }

// True when the socket is ready; false when that took too long.
bool wait_for(int socket, short what, int patience_ms) {
  pollfd waited{socket, what, 0};
  int ready = 0;
  do {
    ready = poll(&waited, 1, patience_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

Result<void> send_all(int socket, std::string_view bytes, int patience_ms) {
  while (!bytes.empty()) {
    if (!wait_for(socket, POLLOUT, patience_ms)) return away("it takes no request");
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent < 0) return away(std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<std::string> receive_all(int socket, int patience_ms) {
  std::string answer;
  for (char bytes[16384];;) {
    if (!wait_for(socket, POLLIN, patience_ms)) return away("it does not answer");
    const ssize_t size = recv(socket, bytes, sizeof bytes, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size < 0) return away(std::strerror(errno));
    if (size == 0) return answer;
    answer.append(bytes, static_cast<std::size_t>(size));
    if (answer.size() > kAnswerMax) return away("its answer is too long");
  }
}

// Head and body; the server was asked to close, so that the end of one is the end of the other.
Result<RemoteAnswer> parse_answer(const std::string& text) {
  constexpr std::string_view kBegin = "HTTP/1.1 ";
  const std::size_t end = text.find("\r\n\r\n");
  RemoteAnswer answer;
  const char* const digits = text.data() + kBegin.size();
  if (!text.starts_with(kBegin) || end == text.npos ||
      std::from_chars(digits, digits + 3, answer.status).ec != std::errc{}) {
    return away(text.empty() ? "it hung up" : "what answers there does not speak HTTP");
  }
  answer.body = text.substr(end + 4);
  return answer;
}

Result<RemoteAnswer> talk(const load::Target& target, const std::string& request, int patience_ms) {
  const auto connected = load::connect_to(target);
  if (!connected) return fail(connected.error());
  const Socket socket(*connected);
  if (!wait_for(socket.number, POLLOUT, patience_ms)) return away("nobody answers there");
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket.number, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0) {
    return away(std::strerror(error));
  }
  return send_all(socket.number, request, patience_ms)
      .and_then([&] { return receive_all(socket.number, patience_ms); })
      .and_then([](const std::string& text) { return parse_answer(text); });
}

}  // namespace

void Remote::add(CLI::App& app, const char* about) {
  app.add_option(option_, address_, about)->type_name("ADDR")->capture_default_str();
}

void Remote::add_token(CLI::App& app) {
  app.add_option("--token-file", token_file_, "What the admin port wants to be told, if it wants a token")
      ->type_name("FILE");
}

CLI::App* Remote::add_subcommand(CLI::App& app, const char* name, const char* about) {
  CLI::App* const one = app.add_subcommand(name, about);
  add(*one, "The server's admin port");
  add_token(*one);
  one->add_flag("--json", json_, "The server's answer as it is");
  return one;
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
  auto answer = talk(*where, request, patience_ms_);
  if (answer && answer->status == 400 && answer->body.starts_with(kTlsWords)) {
    const std::string advice = option_ == "--admin" ? "leave the admin port out with --tls http,grpc,resp"
                                                    : "leave this port out with --tls grpc,resp,admin";
    return fail(ErrorCode::unavailable, "cannot ask the server at " + load::to_string(*where) +
                                            ": this port speaks TLS; " + advice +
                                            ", or let it listen on a unix socket");
  }
  if (answer) return answer;
  return fail(answer.error().code, "cannot ask the server at " + load::to_string(*where) + ": " +
                                       answer.error().message + ". Is weir serve running? Say where with " + option_ +
                                       " ADDR");
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
  return fail(ErrorCode::unavailable, "the server at " + address_ + " refuses: " + said);
}

Result<int> Remote::print(const Call& call, const std::function<std::string(const JsonValue&)>& words) const {
  if (!json_) {
    const auto value = json(call.method, call.target, call.body);
    if (!value) return fail(value.error());
    std::fputs(words(*value).c_str(), stdout);
    return 0;
  }
  const auto answer = this->call(call.method, call.target, call.body);
  if (!answer) return fail(answer.error());
  std::fputs(answer->body.c_str(), stdout);
  return answer->status == 200 ? 0 : kCouldNot;
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
