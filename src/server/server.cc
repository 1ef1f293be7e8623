// Listeners, signals and the loop. See server.h; tested by tests/server/*.sh.
//
// The one file that compiles Asio. A tick each second serves all time-outs, so that a connection costs no
// timer. When file descriptors run out, accepting rests for a moment instead of spinning.
#include "server/server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/connection.h"
#include "server/http_session.h"
#include "server/resp_session.h"

namespace weir {
namespace {

using boost::asio::ip::tcp;
using AsioError = boost::system::error_code;

constexpr std::uint32_t kDrainMax = 10;  // seconds that a drain may take
constexpr std::uint32_t kQuietMin = 60;  // seconds without a failure after which the next one is told again
// Connections beyond the bound that are told so in peace; closing at once could throw the answer away.
constexpr std::size_t kRefusedMax = 64;
constexpr Patience kHttpPatience{.idle = 60, .header = 10, .body = 60};
constexpr Patience kRespPatience{.idle = 0, .header = 60, .body = 60};  // pools keep idle connections for hours

struct Listener {
  Listener(boost::asio::io_context& io, Patience patience_in, std::function<std::unique_ptr<Session>()> make_session_in)
      : acceptor(io), rest(io), patience(patience_in), make_session(std::move(make_session_in)) {}

  tcp::acceptor acceptor;
  boost::asio::steady_timer rest;
  Patience patience;
  std::function<std::unique_ptr<Session>()> make_session;
  std::list<Connection> open;
  std::optional<std::uint64_t> failed_at{};  // the tick at which accepting last failed
};

Error cannot_listen(std::string_view option, const Address& address, const AsioError& error) {
  std::string message = "cannot listen on " + to_string(address) + ": ";
  const std::string free_port = std::string(option) + " " + to_string({address.host, 0});
  if (error == boost::asio::error::address_in_use) {
    message += "the port is in use. Choose another, or any free one with " + free_port;
  } else if (error == boost::asio::error::access_denied) {
    message += "this port needs privileges. Choose one above 1023, or any free one with " + free_port;
  } else if (error == boost::system::errc::address_not_available) {
    message +=
        "this machine has no such address. Try " + std::string(option) + " " + to_string({"127.0.0.1", address.port});
  } else {
    message += error.message();
  }
  return {ErrorCode::unavailable, std::move(message), 0};
}

std::optional<Error> bind_to(Listener& listener, std::string_view option, const Address& address) {
  AsioError error;
  const auto host = boost::asio::ip::make_address(address.host, error);
  if (error) return cannot_listen(option, address, error);
  const tcp::endpoint endpoint(host, address.port);
  listener.acceptor.open(endpoint.protocol(), error);
  if (!error) listener.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) listener.acceptor.bind(endpoint, error);
  if (!error) listener.acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error) return cannot_listen(option, address, error);
  return std::nullopt;
}

Address bound_address(const Listener& listener) {
  AsioError ignored;
  const auto endpoint = listener.acceptor.local_endpoint(ignored);
  return {endpoint.address().to_string(), endpoint.port()};
}

class LoopServer final : public Server {
 public:
  LoopServer(ServerOptions options, Limiter& limiter)
      : options_(std::move(options)),
        io_(1),
        tick_timer_(io_),
        signals_(io_),
        http_service_{.limiter = limiter, .gate = options_.gate},
        resp_service_{.limiter = limiter, .gate = options_.gate, .version = options_.version},
        shared_(limiter),
        http_(io_, kHttpPatience, [this] { return make_http_session(http_service_); }),
        resp_(io_, kRespPatience, [this] { return make_resp_session(resp_service_, ++last_id_); }) {
    shared_.held_max = options_.buffers_max;
  }

  std::optional<Error> bind() {
    if (auto error = bind_to(http_, "--http", options_.http)) return error;
    if (auto error = bind_to(resp_, "--resp", options_.resp)) return error;
    http_address_ = bound_address(http_);
    resp_address_ = bound_address(resp_);
    AsioError error;
    signals_.add(SIGTERM, error);
    if (!error) signals_.add(SIGINT, error);
    if (!error && options_.on_hangup) signals_.add(SIGHUP, error);
    if (error) return Error{ErrorCode::unavailable, "cannot watch for signals: " + error.message(), 0};
    return std::nullopt;
  }

  Address http_address() const override { return http_address_; }
  Address resp_address() const override { return resp_address_; }

  Stopped run() override {
    accept(http_);
    accept(resp_);
    wait_for_signal();
    wait_for_tick();
    while (!io_.stopped()) {
      // Steps of a connection catch what they throw; this is for the few lines around them.
      try {
        io_.run();
      } catch (const std::exception& exception) {
        std::fprintf(stderr, "weir: a handler failed: %s\n", exception.what());
      }
    }
    return stopped_;
  }

 private:
  void accept(Listener& listener) {
    if (is_stopping_) return;
    listener.acceptor.async_accept([this, &listener](const AsioError& error, tcp::socket socket) {
      if (is_stopping_) return;
      if (!error) {
        admit(listener, std::move(socket));
      } else if (error != boost::asio::error::connection_aborted) {
        return rest_then_accept(listener, error);
      }
      accept(listener);
    });
  }

  void rest_then_accept(Listener& listener, const AsioError& error) {
    const auto before = std::exchange(listener.failed_at, shared_.tick);
    if (!before || shared_.tick - *before > kQuietMin) {
      const bool has_too_few = error.value() == EMFILE || error.value() == ENFILE;
      std::fprintf(stderr, "weir: cannot accept connections: %s.%s\n", error.message().c_str(),
                   has_too_few ? " Raise `ulimit -n`." : "");
    }
    listener.rest.expires_after(std::chrono::milliseconds(100));
    listener.rest.async_wait([this, &listener](const AsioError& canceled) {
      if (!canceled) accept(listener);
    });
  }

  void admit(Listener& listener, tcp::socket socket) {
    AsioError error;
    socket.non_blocking(true, error);
    if (!error) socket.set_option(tcp::no_delay(true), error);
    if (error) return;
    try {
      place(listener, std::move(socket));
    } catch (...) {
      return;  // without memory for it, this one connection is closed
    }
  }

  void place(Listener& listener, tcp::socket socket) {
    auto session = listener.make_session();
    const bool is_crowded = listener.open.size() >= options_.connections_max;
    if (is_crowded && listener.open.size() >= options_.connections_max + kRefusedMax) {
      AsioError ignored;
      std::string last_words;
      session->give_up(GiveUp::too_crowded, last_words);
      socket.write_some(boost::asio::buffer(last_words), ignored);
      return;
    }
    listener.open.emplace_back(std::move(socket), std::move(session), listener.patience, listener.open, shared_);
    const auto last = std::prev(listener.open.end());
    if (is_crowded) {
      last->refuse(last, GiveUp::too_crowded);
    } else {
      last->start(last);
    }
  }

  template <class Step>
  void for_each_connection(Step step) {
    for (Listener* listener : {&http_, &resp_}) {
      for (auto next = listener->open.begin(); next != listener->open.end();) step(*next++);
    }
  }

  void wait_for_tick() {
    tick_timer_.expires_after(std::chrono::seconds(1));
    tick_timer_.async_wait([this](const AsioError& canceled) {
      if (canceled) return;
      ++shared_.tick;
      for_each_connection([](Connection& connection) { connection.on_tick(); });
      if (is_stopping_ && shared_.tick - stopping_since_ > kDrainMax) return leave(Stopped::forced);
      wait_for_tick();
    });
  }

  void wait_for_signal() {
    signals_.async_wait([this](const AsioError& canceled, int signal) {
      if (canceled) return;
      if (signal == SIGHUP) {
        wait_for_signal();
        return options_.on_hangup();
      }
      if (is_stopping_) return leave(Stopped::forced);
      wait_for_signal();
      stop();
    });
  }

  void stop() {
    is_stopping_ = true;
    stopping_since_ = shared_.tick;
    for (Listener* listener : {&http_, &resp_}) {
      AsioError ignored;
      listener->acceptor.close(ignored);
      listener->rest.cancel();
    }
    for_each_connection([](Connection& connection) { connection.drain(); });
    await_last_connection();
  }

  // Looks often while stopping: the last connection's end is not announced, and nothing else is left to do.
  void await_last_connection() {
    if (http_.open.empty() && resp_.open.empty()) return leave(Stopped::drained);
    http_.rest.expires_after(std::chrono::milliseconds(20));
    http_.rest.async_wait([this](const AsioError& canceled) {
      if (!canceled) await_last_connection();
    });
  }

  void leave(Stopped stopped) {
    stopped_ = stopped;
    io_.stop();
  }

  ServerOptions options_;
  boost::asio::io_context io_;
  boost::asio::steady_timer tick_timer_;
  boost::asio::signal_set signals_;
  HttpService http_service_;
  RespService resp_service_;
  Shared shared_;
  Listener http_;  // after io_ and shared_: connections end before what they use
  Listener resp_;
  Address http_address_;
  Address resp_address_;
  std::int64_t last_id_ = 0;
  std::uint64_t stopping_since_ = 0;
  bool is_stopping_ = false;
  Stopped stopped_ = Stopped::drained;
};

}  // namespace

std::size_t descriptors_wanted(const ServerOptions& options) {
  return 2 * (options.connections_max + kRefusedMax) + 64;
}

Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter) {
  try {
    auto server = std::make_unique<LoopServer>(std::move(options), limiter);
    if (auto error = server->bind()) return fail(std::move(*error));
    return server;
  } catch (const std::exception& exception) {
    return fail(ErrorCode::unavailable, std::string("cannot start the loop: ") + exception.what());
  }
}

}  // namespace weir
