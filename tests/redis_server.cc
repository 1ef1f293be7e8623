// Starting, finding a free port, and talking over a plain socket. See redis_server.h.

#include "redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "resp/writer.h"

namespace weir::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool is_free(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  const bool is_bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return is_bound;
}

// Claims a port by a socket with its number as its name, which only one process can have; -1: another process has it.
// Two tests could find the same port free, and one could then use the server of the other.
int claim(std::uint16_t port) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "weir-redis-port-" + std::to_string(port);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the first byte is 0: it is no file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  ::close(fd);
  return -1;
}

// A port that is free now, and whose cluster bus port, 10,000 above, is free, too. Both are below the ports that the
// kernel gives to outgoing connections, which could take them before the server listens.
std::uint16_t free_port(int& claimed) {
  static std::mt19937 dice{std::random_device{}()};
  for (;;) {
    const auto port = static_cast<std::uint16_t>(std::uniform_int_distribution(10'000, 19'999)(dice));
    claimed = claim(port);
    if (claimed < 0) continue;
    if (is_free(port) && is_free(static_cast<std::uint16_t>(port + 10'000))) return port;
    ::close(claimed);
  }
}

int connect_to(std::uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
  ::close(fd);
  return -1;
}

// Runs in the child after fork(). It must not allocate: another thread may have held the lock of the allocator.
[[noreturn]] void run_server(char* const* words, char* const* environment, const char* log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left if the test is killed
  const int out = ::open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execvpe("redis-server", words, environment);
  std::perror("redis-server");
  ::_exit(127);
}

// 7 of "Redis server v=7.0.15 ...".
int read_major_version() {
  FILE* const pipe = ::popen("redis-server --version", "r");
  if (pipe == nullptr) return 0;
  int major = 0;
  if (std::fscanf(pipe, "%*s server v=%d", &major) != 1) major = 0;
  ::pclose(pipe);
  return major;
}

std::string make_folder() {
  std::string name = "/tmp/weir-redis-XXXXXX";
  return ::mkdtemp(name.data()) != nullptr ? name : "/tmp";
}

}  // namespace

Result<std::unique_ptr<RedisServer>> RedisServer::start(RedisOptions options) {
  std::unique_ptr<RedisServer> server(new RedisServer);
  server->options_ = std::move(options);
  server->folder_ = make_folder();
  Result<void> outcome;
  for (int attempt = 0; attempt < 5; ++attempt) {  // another program may take the port in between
    if (server->claim_ >= 0) ::close(server->claim_);
    server->port_ = free_port(server->claim_);
    outcome = server->run();
    if (outcome) return server;
  }
  return fail(outcome.error());
}

Result<void> RedisServer::run() {
  const std::string number = std::to_string(port_), config = folder_ + "/redis.conf", log = folder_ + "/log";
  if (!options_.config.empty()) std::ofstream(config) << options_.config;
  std::vector<std::string> words{"redis-server"};
  if (!options_.config.empty()) words.push_back(config);
  if (options_.is_sentinel) words.emplace_back("--sentinel");
  for (const char* word : {"--bind", "127.0.0.1", "--dir"}) words.emplace_back(word);
  words.push_back(folder_);
  if (!options_.is_sentinel) {
    for (const char* word : {"--save", "", "--appendonly", "no"}) words.emplace_back(word);
  }
  bool has_port = false;
  for (std::size_t i = 0; i < options_.settings.size(); ++i) {
    const std::string& setting = options_.settings[i];
    if (setting == "--enable-debug-command" && redis_major_version() < 7) {
      ++i;  // and its value: there it is always allowed
      continue;
    }
    has_port = has_port || setting == "--port";
    const std::size_t place = setting.find("PORT");
    words.push_back(place == setting.npos ? setting : setting.substr(0, place) + number + setting.substr(place + 4));
  }
  if (!has_port) words.insert(words.end(), {"--port", number});
  std::vector<char*> raw;
  for (std::string& word : words) raw.push_back(word.data());
  raw.push_back(nullptr);
  std::vector<char*> environment;
  for (std::string& setting : options_.environment) environment.push_back(setting.data());
  for (char** setting = environ; *setting != nullptr; ++setting) environment.push_back(*setting);
  environment.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) run_server(raw.data(), environment.data(), log.c_str());
  for (int i = 0; i < 6'000; ++i) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
      pid_ = -1;  // it has ended
      break;
    }
    if (const int fd = connect_to(port_); fd >= 0) {
      ::close(fd);
      return {};
    }
    ::usleep(10'000);
  }
  kill();
  std::ifstream file(log);
  return fail(ErrorCode::unavailable,
              "redis-server does not start; it said:\n" + std::string(std::istreambuf_iterator<char>(file), {}));
}

void RedisServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Result<void> RedisServer::restart() {
  kill();
  return run();
}

// Without a process there is nothing to signal: kill(-1) would reach every process of the user.
void RedisServer::pause() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);
}

void RedisServer::resume() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

RedisServer::~RedisServer() {
  kill();
  if (claim_ >= 0) ::close(claim_);
  std::error_code ignored;
  if (folder_.size() > 5) std::filesystem::remove_all(folder_, ignored);
}

int redis_major_version() {
  static const int kVersion = read_major_version();
  return kVersion;
}

resp::Value call_redis(std::uint16_t port, std::initializer_list<std::string> words) {
  RedisClient client(port);
  return client.call(words);
}

RedisClient::RedisClient(std::uint16_t port) : socket_(connect_to(port)) {}
RedisClient::~RedisClient() { ::close(socket_); }

resp::Value RedisClient::call(std::span<const std::string> words) {
  const std::vector<std::string> command(words.begin(), words.end());
  return call_all({&command, 1}).front();
}

std::vector<resp::Value> RedisClient::call_all(std::span<const std::vector<std::string>> commands) {
  std::string out;
  for (const auto& words : commands) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    resp::append_command(out, views);
  }
  for (std::size_t sent = 0; sent < out.size();) {
    const ssize_t n = ::send(socket_, out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) std::abort();
    sent += static_cast<std::size_t>(n);
  }
  std::vector<resp::Value> answers;
  while (answers.size() < commands.size()) answers.push_back(read());
  return answers;
}

resp::Value RedisClient::read() {
  for (;;) {
    resp::ParsedReply reply = parser_.parse(input_);
    if (reply.status == resp::Status::done) {
      input_.erase(0, reply.consumed);
      return std::move(reply.value);
    }
    char bytes[65'536];
    const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
    if (reply.status == resp::Status::bad || n <= 0) std::abort();
    input_.append(bytes, static_cast<std::size_t>(n));
  }
}

}  // namespace weir::test
