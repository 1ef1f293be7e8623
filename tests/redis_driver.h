// A Redis client for tests that drives itself until its answers are there, and keeps them.
//
// One thread. Used by client_test.cc, cluster_test.cc, sentinel_test.cc and tls_test.cc.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blocking_client.h"
#include "redis/client.h"
#include "redis_server.h"

namespace weir::redis {

constexpr Micros operator""_ms(unsigned long long count) { return Micros{static_cast<std::int64_t>(count) * 1'000}; }

// The answer to one command.
struct Heard {
  std::optional<FaultKind> fault{};
  std::string text{};  // of the fault, or of the value
  bool was_sent = false;
  resp::Value value{};
  std::vector<std::int64_t> integers{};
};

class Driver final : public Receiver {
 public:
  explicit Driver(const std::string& url, ClientOptions options = {}) {
    if (!options.on_event) options.on_event = [this](const Event& event) { events.push_back(event); };
    auto target = base::redis::parse_url(url);
    if (!target) std::abort();
    client.emplace(*std::move(target), std::move(options));
    client->turn(steady_now());
  }

  // The tag of its answer.
  std::uint64_t send(const std::vector<std::string>& words, Command command = {}) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    command.words = views;
    if (command.deadline == kNever) command.deadline = steady_now() + timeout;
    client->send(command, {this, ++tags});
    return tags;
  }
  // The same, and waits for it.
  Heard ask(const std::vector<std::string>& words, Command command = {}) {
    const std::uint64_t tag = send(words, command);
    wait([&] { return heard.count(tag) > 0; });
    return heard[tag];
  }
  // For a minute at most.
  bool wait(const std::function<bool()>& is_so) {
    const Micros until = steady_now() + Micros{60'000'000};
    while (!is_so()) {
      if (steady_now() > until) return false;
      wait_and_turn(*client, std::min(until, steady_now() + 20_ms));
    }
    return true;
  }
  void run_for(Micros time) {
    const Micros until = steady_now() + time;
    while (steady_now() < until) wait_and_turn(*client, until);
  }
  void on_reply(std::uint64_t tag, const Reply& reply) override {
    sequence.push_back(tag);
    Heard& one = heard[tag];
    ++calls[tag];
    if (reply.fault != nullptr) {
      one.fault = reply.fault->kind;
      one.text = reply.fault->text;
      one.was_sent = reply.fault->was_sent;
    } else if (reply.value != nullptr) {
      one.value = *reply.value;
      one.text = reply.value->text;
    } else {
      one.integers.assign(reply.integers.begin(), reply.integers.end());
    }
  }
  std::size_t faults() const {
    std::size_t count = 0;
    for (const auto& row : heard) count += row.second.fault ? 1U : 0U;
    return count;
  }
  std::string first_fault() const {
    for (const auto& row : heard) {
      if (row.second.fault) return std::string(name_of(*row.second.fault)) + ": " + row.second.text;
    }
    return "";
  }

  Micros timeout{5'000'000};
  std::uint64_t tags = 0;
  std::map<std::uint64_t, Heard> heard;
  std::map<std::uint64_t, int> calls;
  std::vector<std::uint64_t> sequence;  // the tags, as answers came
  std::vector<Event> events;
  std::optional<Client> client;  // the last member: it answers when it ends
};

inline std::unique_ptr<test::RedisServer> start_redis(test::RedisOptions options = {}) {
  auto server = test::RedisServer::start(std::move(options));
  if (!server) std::fprintf(stderr, "%s\n", server.error().message.c_str());
  return server ? *std::move(server) : nullptr;
}

}  // namespace weir::redis
