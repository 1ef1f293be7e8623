// Commands that a thread sends to Redis through the store's own thread, and waits for. They are few, and none
// is a decision.
//
//   auto answers = commands.run({.words = {"INFO"}, .is_for_all = true}, [&] { thread.wake(); });
//
// Any thread but the store's may call run(); the store's thread calls the others. Tested by
// tests/fleet_nodes_test.cc.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "fleet/script_pipeline.h"
#include "redis/client.h"
#include "weir/result.h"

namespace weir::fleet {

struct StoreCommand {
  std::vector<std::string> words{};  // the command; for a script, the arguments after its name
  int script = redis::kNoScript;     // as add_script() returned it
  std::string key{};                 // in a cluster, the key that selects the server
  bool is_for_all = false;           // sent to every master
};

struct StoreAnswer {
  std::string address{};  // of the server; empty if only one was asked
  Result<resp::Value> value{};
};

class StoreCommands final : private redis::Receiver {
 public:
  static constexpr Micros kTimeout{500'000};

  // One answer from each server that was asked, or an error in its place; never empty.
  std::vector<StoreAnswer> run(StoreCommand command, const std::function<void()>& wake);

  // For the store's thread. turn() sends what was posted; end() fails it.
  void turn(ScriptPipeline& pipeline, Micros now);
  void end();

 private:
  struct Job {
    StoreCommand command;
    std::vector<StoreAnswer> answers;
    std::size_t left = 0;
    bool is_done = false;
  };

  void on_reply(std::uint64_t tag, const redis::Reply& reply) override;
  void send(ScriptPipeline& pipeline, const std::shared_ptr<Job>& job, int node, std::string address, Micros now);
  void finish(Job& job);

  std::uint64_t next_tag_ = 1;
  std::unordered_map<std::uint64_t, std::pair<std::shared_ptr<Job>, std::size_t>> in_flight_;
  base::Mutex mutex_;  // guards the results of jobs, too
  std::condition_variable changed_;
  std::vector<std::shared_ptr<Job>> posted_ GUARDED_BY(mutex_);
  bool has_ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace weir::fleet
