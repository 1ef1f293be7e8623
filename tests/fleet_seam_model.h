// A fleet whose Redis is scripted: the script itself in Lua, in virtual time, and nodes with the store of the program,
// each behind a line on which calls are lost, answered late, cut off or not sent.
//
// There is no thread: the test does what a node's keeper would. Fixture of fleet_seam_model_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fleet/fleet_store.h"
#include "fleet/key_name.h"
#include "fleet/redis_key.h"
#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "redis/slot.h"
#include "store_fixture.h"

namespace weir::test {

using What = ScriptRequest::What;

inline constexpr std::int64_t kEpoch_us = 1'794'701'843'991'953;
inline constexpr std::size_t kKeys = 4, kServers = 2;

inline std::string name_of(std::size_t key) { return "k" + std::to_string(key); }
// -1 if it is none of those that are counted.
inline int key_of(std::string_view name) { return name.size() == 2 && name[0] == 'k' ? name[1] - '0' : -1; }

inline int slot_of(std::size_t key) {
  const std::string name = name_of(key);
  std::string head;
  append_redis_head(head, kTicketMark, redis_tag(subject_of(name)));
  return redis::slot_of(head);
}

// What happens to a call.
enum class Fate { answered, unsent, lost, late, broken, broken_first };

struct Redis {
  std::shared_ptr<LuaRedis> lua = std::make_shared<LuaRedis>(redis_script());
  LuaDatabase database;
  bool is_cluster = false;
  Micros now{1'000'000'000};
  int calls = 0;
  std::int64_t now_us() const { return kEpoch_us + now.count(); }
  std::size_t server_of(std::string_view name) const {
    return is_cluster ? static_cast<std::size_t>(name.back()) % kServers : 0;
  }

  // As few calls as can be: a key under another version of its limit goes into the next. Whether they were understood.
  bool run(std::span<Question> questions) {
    ScriptCall call("weir:");
    std::vector<std::unique_ptr<Ask>> asks;
    for (Question& question : questions) {
      Ask& ask = *asks.emplace_back(std::make_unique<Ask>());
      ask.fill(question.what, question.charges, question.id, question.lasts, question.charged_us);
      if (call.add(ask.request)) continue;
      if (asks.size() == 1) return false;
      const std::size_t first = asks.size() - 1;
      return run(questions.first(first)) && run(questions.subspan(first));
    }
    ++calls;
    now += Micros{50};  // no two calls have the same time
    const auto read = lua->call(database, now_us(), call);
    EXPECT_TRUE(read) << read.error().message;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      questions[i].ruling = asks[i]->request.ruling;
      questions[i].decided_us = call.now_us();
      std::ranges::copy(asks[i]->decisions, questions[i].decisions.begin());
      std::ranges::copy(asks[i]->reserved, questions[i].reserved.begin());
    }
    return read.has_value();
  }
};

// What Redis last told a node of a key.
struct Heard {
  std::int64_t used = 0, at_us = 0;
  Micros until{0};  // then it is full again
};

// A node's connections, one to each server.
struct Line final : Transport {
  explicit Line(Redis& its) : redis(its) {}

  // Questions that are tied go in one call. In a cluster each other one is a call.
  void run(std::span<Question> questions) override {
    for (Question& question : questions) question.state = Ask::State::failed;
    if (const auto other = std::exchange(meanwhile, {})) other();
    while (!questions.empty()) {
      std::size_t count = redis.is_cluster ? 1 : questions.size();
      while (count < questions.size() && questions[count - 1].is_tied) ++count;
      run_call(questions.first(count));
      questions = questions.subspan(count);
    }
  }
  void run_call(std::span<Question> questions) {
    const std::size_t server = redis.server_of(questions[0].charges[0].key);
    const bool is_meant = server == fate_server;
    if (is_cut[server] || (is_meant && fate == Fate::unsent)) return;
    const Fate what = is_meant ? std::exchange(fate, Fate::answered) : Fate::answered;
    const bool is_executed = what != Fate::lost && what != Fate::broken_first && redis.run(questions);
    for (Question& question : questions) {
      if (what == Fate::answered && is_executed) {
        question.state = Ask::State::answered;
        if (question.what != What::look && question.what != What::undo) hear(question.charges, question);
      } else {
        question.is_in_doubt = true;
      }
      const bool has_doubt = question.what == What::charge || question.what == What::once ||
                             question.what == What::reserve || question.what == What::overdraw ||
                             question.what == What::undo;
      if ((what == Fate::lost || what == Fate::late) && has_doubt) give_up(question, is_executed);
    }
  }
  // Its reply will come, or its connection break.
  void give_up(Question& question, bool is_executed) {
    std::vector<Doubt::Part> parts;
    for (const Charge& charge : question.charges) {
      parts.push_back({std::string(std::string_view(KeyName(charge))), *charge.limit, charge.cost});
    }
    question.doubt =
        std::make_shared<Doubt>(question.what, parts, std::string(question.id), settle, question.charged_us);
    const bool is_charged = is_executed && question.ruling == ScriptRequest::Ruling::allowed;
    std::vector<Decision> decisions;
    if (is_executed) decisions.assign(question.decisions.begin(), question.decisions.end());
    late.push_back([this, doubt = question.doubt, is_charged, is_executed, at = question.decided_us, decisions] {
      doubt->resolve(is_charged, at, decisions, !is_executed);
      if (doubt->what() == What::undo) return;
      for (std::size_t i = 0; i < decisions.size(); ++i) {
        const Doubt::Part& part = doubt->parts()[i];
        if (part.cost > 0) hear(part.key(), part.limit, decisions[i], at);
      }
    });
  }
  void hear(std::span<const Charge> charges, const Question& question) {
    for (std::size_t i = 0; i < charges.size(); ++i) {
      hear(charges[i].key, *charges[i].limit, question.decisions[i], question.decided_us);
    }
  }
  // Nothing left under the lower version says only that at least its capacity is used.
  void hear(std::string_view name, const Limit& limit, const Decision& decision, std::int64_t at_us) {
    const int key = key_of(name);
    if (key < 0) return;
    auto& known = heard[static_cast<std::size_t>(key)];
    if (known && at_us < known->at_us) return;
    std::int64_t used = limit.capacity - decision.remaining;
    if (known && decision.remaining == 0 && known->until > redis.now) used = std::max(used, known->used);
    known = {used, at_us, redis.now + decision.reset_after};
  }

  bool is_away() const override { return !redis.is_cluster && is_cut[0]; }
  bool is_any_cut() const { return is_cut[0] || is_cut[1]; }
  Micros now() const override { return redis.now; }

  Redis& redis;
  std::array<bool, kServers> is_cut{};
  Fate fate = Fate::answered;  // of the next call to this server
  std::size_t fate_server = 0;
  std::function<void()> meanwhile;  // while the next call is in flight
  Doubt::Settle settle;
  std::array<std::optional<Heard>, kKeys> heard{};
  std::vector<std::function<void()>> late;  // what will be known of calls that were given up
};

// What is drawn for a whole history.
struct Setting {
  Algorithm algorithm = Algorithm::fixed_window;
  bool is_fast = false;       // a bucket that refills while the history lasts
  bool is_cluster = false;    // of Redis
  bool is_small = false;      // the nodes' tables: shares are evicted
  bool is_forgetful = false;  // the nodes' memories of what Redis said
  bool is_calm = false;       // only outages of all nodes: nearly nothing may be admitted beside the limit

  std::string text() const {
    return std::string(name_of_algorithm(algorithm)) + (is_fast ? ", fast" : "") + (is_cluster ? ", cluster" : "") +
           (is_small ? ", small tables" : "") + (is_forgetful ? ", forgetful" : "") + (is_calm ? ", calm" : "");
  }
  static std::string_view name_of_algorithm(Algorithm algorithm) {
    return algorithm == Algorithm::fixed_window     ? "fixed_window"
           : algorithm == Algorithm::sliding_window ? "sliding_window"
           : algorithm == Algorithm::sliding_log    ? "sliding_log"
                                                    : "token_bucket";
  }
};

struct SeamNode {
  SeamNode(Redis& redis, std::uint32_t rank, std::uint32_t nodes, const Setting& its = {})
      : line(std::make_shared<Line>(redis)), seat{rank, nodes}, setting(its) {
    start({});
  }
  void start(Keepsake kept) {
    here = MemoryStore::open({.keys = setting.is_small ? 1u : 1'000u}, clock).value();
    FleetStoreOptions options{.kept = std::move(kept), .transport = line};
    if (setting.is_cluster) options.target.layout = redis::Layout::cluster;
    if (setting.is_forgetful) options.memory_keys = 4;
    options.remembers_denials = true;
    store = std::make_unique<FleetStore>(options);
    store->use(*here);
    store->local().sit(seat);
    line->settle = [this](const Doubt& doubt, const Doubt::Outcome& outcome) { store->settle(doubt, outcome); };
    line->heard = {};
    for (std::size_t server = 0; server < kServers; ++server) {
      if (line->is_cut[server]) cut(server);
    }
  }
  void cut(std::size_t server) {
    line->is_cut[server] = true;
    if (!setting.is_cluster) return store->handover().begin();
    for (std::size_t key = 0; key < kKeys; ++key) {
      if (line->redis.server_of(name_of(key)) == server) store->handover().begin(slot_of(key));
    }
  }
  // As its keeper does.
  void send_undos() {
    const auto can_be_sent = [this](const Undo& one) { return !line->is_cut[line->redis.server_of(one.key)]; };
    Undos& undos = store->keeper().undos();
    for (Undo& undo : undos.take(line->redis.now, can_be_sent)) {
      const Charge charge = undo.charge();
      Decision decision;
      std::int64_t reserved = 0;
      Question question{.what = undo.asks(),
                        .charges = {&charge, 1},
                        .id = undo.id,
                        .charged_us = undo.charged_us,
                        .decisions = {&decision, 1}};
      if (undo.is_reserved()) question.reserved = {&reserved, 1};
      line->run({&question, 1});
      if (question.doubt) question.doubt->decide(false);
      undos.finish(std::move(undo), question.state, question.is_in_doubt, line->redis.now);
    }
  }
  void hear_late() {
    for (const auto& one : std::exchange(line->late, {})) one();
  }
  bool is_synced() const {
    return store->handover().is_none_pending() && store->owed().is_synced() && store->write_backs().is_empty();
  }
  bool is_sharing(std::size_t key) const { return store->handover().concerns(setting.is_cluster ? slot_of(key) : -1); }

  std::shared_ptr<Line> line;
  Seat seat;
  const Setting setting;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{kEpoch_us});
  std::unique_ptr<MemoryStore> here;
  std::unique_ptr<FleetStore> store;
  Handover::Other report{};
};

}  // namespace weir::test
