// Starting, finding a free port, and talking over a plain socket. See redis_server.h.

#include "redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fstream>
#include <iterator>

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

// A port that was free a moment ago.
std::uint16_t free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
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

[[noreturn]] void run_server(std::uint16_t port, const char* log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left if the test is killed
  const int out = ::open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  const std::string number = std::to_string(port);
  ::execlp("redis-server", "redis-server", "--port", number.c_str(), "--bind", "127.0.0.1", "--save", "",
           "--appendonly", "no", "--dir", "/tmp", nullptr);
  std::perror("redis-server");
  ::_exit(127);
}

}  // namespace

Result<std::unique_ptr<RedisServer>> RedisServer::start() {
  std::string said;
  for (int attempt = 0; attempt < 5; ++attempt) {  // somebody else may take the port in between
    std::unique_ptr<RedisServer> server(new RedisServer);
    server->port_ = free_port();
    server->log_ = "/tmp/weir-redis-" + std::to_string(server->port_) + ".log";
    server->pid_ = ::fork();
    if (server->pid_ == 0) run_server(server->port_, server->log_.c_str());
    for (int i = 0; i < 500 && ::waitpid(server->pid_, nullptr, WNOHANG) == 0; ++i) {
      if (const int fd = connect_to(server->port_); fd >= 0) {
        ::close(fd);
        return server;
      }
      ::usleep(20'000);
    }
    std::ifstream log(server->log_);
    said.assign(std::istreambuf_iterator<char>(log), {});
  }
  return fail(ErrorCode::unavailable, "redis-server does not start; it said:\n" + said);
}

RedisServer::~RedisServer() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::unlink(log_.c_str());
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
