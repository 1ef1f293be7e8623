// A fleet with a simulated Redis: it runs the real Lua script, in virtual time. The nodes have the store of the
// program. The connection of each node loses calls, answers them late, cuts them off or does not send them.
//
// There is no thread: the test does what the background work of a node would. Fixture of fleet_seam_model_test.cc.
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

#include "cluster_key.h"
#include "fleet/fleet_store.h"
#include "fleet/key_name.h"
#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "store_fixture.h"

namespace weir::test {

using What = fleet::ScriptRequest::What;
using State = fleet::ScriptRequest::State;

inline constexpr std::int64_t kEpoch_us = 1'794'701'843'991'953;
inline constexpr std::size_t kKeys = 4, kServers = 2;

inline std::string name_of(std::size_t key) { return "k" + std::to_string(key); }
// The number of a key; -1 if the test does not count it.
inline int key_of(std::string_view name) { return name.size() == 2 && name[0] == 'k' ? name[1] - '0' : -1; }

inline int slot_of(std::size_t key) { return slot_of_key(name_of(key)); }

// What happens to a call.
enum class Fate { answered, unsent, lost, late, broken, broken_first };

struct Redis {
  std::shared_ptr<LuaRedis> lua = std::make_shared<LuaRedis>(fleet::redis_script());
  LuaDatabase database;
  bool is_cluster = false;
  Micros now{1'000'000'000};
  int calls = 0;
  Micros behind{0};  // its clock ran back by so much
  std::int64_t now_us() const { return kEpoch_us + (now - behind).count(); }
  std::size_t server_of(std::string_view name) const {
    return is_cluster ? static_cast<std::size_t>(name.back()) % kServers : 0;
  }

  // Makes as few calls as possible: a key under another version of its limit needs another call. False after an error.
  bool run(std::span<fleet::ScriptRequest> requests) {
    fleet::ScriptCall call("weir:");
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (call.add(requests[i])) continue;
      if (i == 0) return false;
      return run(requests.first(i)) && run(requests.subspan(i));
    }
    ++calls;
    now += Micros{50};  // no two calls have the same time
    const auto read = lua->call(database, now_us(), call);
    EXPECT_TRUE(read) << read.error().message;
    for (fleet::ScriptRequest& request : requests) request.decided_us = call.now_us();
    return read.has_value();
  }
};

// The last answer of Redis to a node about a key.
inline constexpr std::int64_t kAllUsed = 1'000'000;  // under any version of the limit
struct Heard {
  std::int64_t used = 0, at_us = 0;
  Micros until{0};  // then it is full again
};

// A node's connections, one to each server.
struct Line final : fleet::Transport {
  explicit Line(Redis& its) : redis(its) {}

  // Requests that are tied go in one call. In a cluster each other one is a call.
  void run(std::span<fleet::ScriptRequest> requests) override {
    for (fleet::ScriptRequest& request : requests) request.state = State::failed;
    if (is_barred) return;
    if (const auto other = std::exchange(meanwhile, {})) other();
    while (!requests.empty()) {
      std::size_t count = redis.is_cluster ? 1 : requests.size();
      while (count < requests.size() && requests[count - 1].is_tied) ++count;
      run_call(requests.first(count));
      requests = requests.subspan(count);
    }
  }
  void run_call(std::span<fleet::ScriptRequest> requests) {
    const std::size_t server = redis.server_of(requests[0].charges[0].key);
    const bool is_meant = server == fate_server;
    if (is_cut[server] || (is_meant && fate == Fate::unsent)) return;
    const Fate what = is_meant ? std::exchange(fate, Fate::answered) : Fate::answered;
    const bool is_executed = what != Fate::lost && what != Fate::broken_first && redis.run(requests);
    for (fleet::ScriptRequest& request : requests) {
      if (what == Fate::answered && is_executed) {
        request.state = State::answered;
        if (request.what != What::look && request.what != What::undo) hear(request.charges, request);
      } else {
        request.is_in_doubt = true;
      }
      const bool has_doubt = request.what == What::charge || request.what == What::once ||
                             request.what == What::reserve || request.what == What::overdraw ||
                             request.what == What::undo;
      if ((what == Fate::lost || what == Fate::late) && has_doubt) give_up(request, is_executed);
    }
  }
  // The call timed out. Its reply comes later, or its connection breaks.
  void give_up(fleet::ScriptRequest& request, bool is_executed) {
    std::vector<fleet::Doubt::Part> parts;
    for (const Charge& charge : request.charges) {
      parts.push_back({std::string(std::string_view(fleet::KeyName(charge))), *charge.limit, charge.cost});
    }
    request.doubt =
        std::make_shared<fleet::Doubt>(request.what, parts, std::string(request.id), settle, request.charged_us);
    const bool is_charged = is_executed && request.ruling == fleet::Ruling::allowed;
    std::vector<Decision> decisions;
    if (is_executed) decisions.assign(request.decisions.begin(), request.decisions.end());
    late.push_back([this, doubt = request.doubt, is_charged, is_executed, at = request.decided_us, decisions] {
      doubt->resolve(is_charged, at, decisions, !is_executed);
      if (doubt->what() == What::undo) return;
      for (std::size_t i = 0; i < decisions.size(); ++i) {
        const fleet::Doubt::Part& part = doubt->parts()[i];
        if (part.cost > 0) hear(part.key(), part.limit, decisions[i], at, true);
      }
    });
  }
  void hear(std::span<const Charge> charges, const fleet::ScriptRequest& request) {
    for (std::size_t i = 0; i < charges.size(); ++i) {
      hear(charges[i].key, *charges[i].limit, request.decisions[i], request.decided_us);
    }
  }
  // If a version has nothing left, a higher one may have nothing left, too. A node that knows how much is used keeps
  // that. An older reply, or one after the clock of Redis ran back, counts only if it is more.
  void hear(std::string_view name, const Limit& limit, const Decision& decision, std::int64_t at_us,
            bool is_late = false) {
    const int key = key_of(name);
    if (key < 0) return;
    auto& known = heard[static_cast<std::size_t>(key)];
    const bool is_older = known && at_us < known->at_us && (is_late || known->at_us - at_us < 1'000'000);
    if (is_older && decision.reset_after.count() <= known->at_us - at_us) return;
    std::int64_t used = limit.capacity - decision.remaining, last_us = at_us;
    Micros until = redis.now + decision.reset_after;
    const bool does_count = known && known->until > redis.now;
    if (decision.remaining == 0) used = does_count && known->used >= limit.capacity ? known->used : kAllUsed;
    if (does_count && (is_older || decision.remaining == 0)) {
      used = std::max(used, known->used);
      until = std::max(until, known->until);
    }
    if (is_older) last_us = known->at_us;
    known = {used, last_us, until};
  }

  bool is_down() const override {
    const bool is_down = is_barred || (!redis.is_cluster && is_cut[0]);
    if (const auto other = is_down ? std::exchange(after_down, {}) : nullptr) other();
    return is_down;
  }
  bool is_any_cut() const { return is_cut[0] || is_cut[1]; }
  Micros now() const override { return redis.now; }

  Redis& redis;
  std::array<bool, kServers> is_cut{};
  bool is_barred = false;      // by servers of another version of the key format
  Fate fate = Fate::answered;  // of the next call to this server
  std::size_t fate_server = 0;
  std::function<void()> meanwhile;           // while the next call is in flight
  mutable std::function<void()> after_down;  // as soon as the store has seen that this line is cut
  fleet::Doubt::Settle settle;
  std::array<std::optional<Heard>, kKeys> heard{};
  std::vector<std::function<void()>> late;  // the outcomes of calls that timed out, for later
};

// The random settings of a history.
struct Setting {
  Algorithm algorithm = Algorithm::fixed_window;
  bool is_fast = false;       // a bucket that refills while the history lasts
  bool is_short = false;      // a window or log with a period that ends many times while the history lasts
  bool is_cluster = false;    // Redis is a cluster
  bool is_small = false;      // the nodes' tables are small: shares are evicted
  bool is_forgetful = false;  // the nodes' memories of answers are small
  bool is_calm = false;       // only outages of all nodes: almost nothing is admitted beyond the limit

  std::string text() const {
    return std::string(weir::to_string(algorithm)) + (is_fast ? ", fast" : "") + (is_short ? ", short" : "") +
           (is_cluster ? ", cluster" : "") + (is_small ? ", small tables" : "") + (is_forgetful ? ", forgetful" : "") +
           (is_calm ? ", calm" : "");
  }
};

// A reservation that is not settled under all of its keys yet.
struct Reservation {
  std::size_t node = 0;
  std::vector<std::size_t> keys{}, settled{};
  std::string id{};
  std::int64_t cost = 0, used = 0;
  std::int64_t charged_us = 0;
};

struct SeamNode {
  SeamNode(Redis& redis, std::uint32_t place, std::uint32_t nodes, const Setting& its = {})
      : line(std::make_shared<Line>(redis)), rank{place, nodes}, setting(its) {
    start({});
  }
  void start(fleet::SavedFleetState kept) {
    here = store::MemoryStore::open({.keys = setting.is_small ? 1u : 1'000u}, clock).value();
    fleet::FleetStoreOptions options{.kept = std::move(kept), .transport = line};
    if (setting.is_cluster) options.target.layout = base::redis::Layout::cluster;
    if (setting.is_forgetful) options.memory_keys = 4;
    options.remembers_denials = true;
    store = std::make_unique<fleet::FleetStore>(options);
    store->use(*here);
    store->fallback_store().set_rank(rank);
    line->settle = [this](const fleet::Doubt& doubt, const fleet::Doubt::Outcome& outcome) {
      store->settle(doubt, outcome);
    };
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
  // A heartbeat with these other nodes. A server that has just started also looks for unsynced charges among them.
  void beat(std::span<const fleet::Handover::Other> others, std::uint64_t beats, Micros wait_max) {
    const std::int64_t redis_ms = line->redis.now.count() / 1'000;
    store->fallback_store().set_rank(rank);
    if (!line->is_any_cut() && is_new) store->handover().meet(others, redis_ms, kBelieved, line->redis.now);
    store->handover().turn({.is_any_open = line->is_any_cut(),
                            .is_synced = is_synced(),
                            .beats = beats,
                            .redis_ms = redis_ms,
                            .others = others,
                            .wait_max = wait_max},
                           line->redis.now);
  }
  void make_report() {
    report = {line->redis.now.count() / 1'000, store->handover().reports_synced(is_synced(), line->redis.now),
              rank.rank};
  }
  // Sends the undos that are due, as the background work does.
  void send_undos() {
    const auto can_be_sent = [this](const fleet::Undo& one) { return !line->is_cut[line->redis.server_of(one.key)]; };
    fleet::Undos& undos = store->background().undos();
    for (fleet::Undo& undo : undos.take(line->redis.now, can_be_sent)) {
      const Charge charge = undo.charge();
      Decision decision;
      std::int64_t reserved = 0;
      fleet::ScriptRequest request{.what = undo.asks(),
                                   .charges = {&charge, 1},
                                   .id = undo.id,
                                   .charged_us = undo.charged_us,
                                   .decisions = {&decision, 1}};
      if (undo.is_reserved()) request.reserved = {&reserved, 1};
      line->run({&request, 1});
      if (request.doubt) request.doubt->decide(false);
      undos.finish(std::move(undo), request.state, request.is_in_doubt, line->redis.now);
    }
  }
  // Sends one batch of unsynced charges, and returns what became of the call. Nothing if no batch can be sent now.
  std::optional<State> write_back(std::size_t most) {
    auto batch = store->write_backs().take(most, line->redis.now);
    if (!batch) return {};
    std::vector<Decision> decisions(batch->charges.size());
    fleet::ScriptRequest request = batch->request(decisions);
    line->run({&request, 1});
    store->write_backs().finish(*std::move(batch), fleet::WriteBacks::reply_to(request), line->redis.now);
    return request.state;
  }
  void hear_late() {
    for (const auto& one : std::exchange(line->late, {})) one();
  }
  bool is_synced() const {
    return store->handover().is_none_pending() && store->unsynced_charges().is_synced() &&
           store->write_backs().is_empty();
  }
  bool is_sharing(std::size_t key) const { return store->handover().concerns(setting.is_cluster ? slot_of(key) : -1); }

  std::shared_ptr<Line> line;
  fleet::NodeRank rank;
  const Setting setting;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{kEpoch_us});
  std::unique_ptr<store::MemoryStore> here;
  std::unique_ptr<fleet::FleetStore> store;
  fleet::Handover::Other report{};
  bool is_new = false;  // it has started after others

  static constexpr Micros kBelieved{5'000'000};
};

}  // namespace weir::test
