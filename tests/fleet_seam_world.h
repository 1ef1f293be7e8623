// The world of fleet_seam_model_test.cc: the nodes, a scripted Redis, and the bound, under a history that a seed draws.
//
// run() takes random steps, and after each compares what was admitted with the bound. At the end it removes all faults
// and checks that Redis has every charge. Fixture of fleet_seam_model_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fleet_seam_model.h"

namespace weir::test {

inline constexpr std::uint64_t kFamily = 7;  // all are of one rule

class World {
 public:
  explicit World(std::uint64_t seed) : dice_(seed) {
    const auto count = static_cast<std::uint32_t>(1 + seed % 3);
    constexpr std::array kAlgorithms{Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::sliding_log,
                                     Algorithm::token_bucket};
    setting_.algorithm = kAlgorithms[static_cast<std::size_t>(draw(4))];
    const bool is_bucket = setting_.algorithm == Algorithm::token_bucket, is_quick = draw(2) == 0;
    setting_.is_fast = is_bucket && is_quick;
    setting_.is_short = !is_bucket && is_quick;
    setting_.is_cluster = draw(2) == 0;
    const std::int64_t size = draw(6);
    setting_.is_small = size == 0;
    setting_.is_forgetful = size == 1;
    setting_.is_calm = draw(3) == 0;
    limit_ = limit_of(setting_.is_fast    ? "600/minute burst 60"
                      : setting_.is_short ? "60/300ms"
                                          : "60/year",
                      setting_.algorithm);
    low_ = limit_of(setting_.is_fast    ? "300/minute burst 30"
                    : setting_.is_short ? "30/300ms"
                                        : "30/year",
                    setting_.algorithm);
    redis_.is_cluster = setting_.is_cluster;
    for (std::uint32_t i = 0; i < count; ++i) {
      nodes_.push_back(std::make_unique<SeamNode>(redis_, i, count, setting_));
      nodes_.back()->make_report();
    }
    ceiling_.fill(static_cast<double>(limit_.capacity));
    is_exact_.fill(!setting_.is_fast && !setting_.is_short);
  }

  std::string run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      if (std::string why = broken_bound(); !why.empty()) return "step " + std::to_string(i) + ": " + why + told();
    }
    std::string why = quiet();
    return why.empty() ? why : why + told();
  }

 private:
  std::string told() const { return " (" + std::to_string(count()) + " nodes, " + setting_.text() + ")"; }
  std::int64_t draw(std::int64_t below) {
    return static_cast<std::int64_t>(dice_() % static_cast<std::uint64_t>(below));
  }
  std::int64_t count() const { return static_cast<std::int64_t>(nodes_.size()); }
  std::size_t some_key() { return static_cast<std::size_t>(draw(kKeys)); }
  SeamNode& some_node() { return *nodes_[static_cast<std::size_t>(draw(count()))]; }
  std::size_t server_of(std::size_t key) const { return redis_.server_of(name_of(key)); }
  // One request in four is of the lower version.
  const Limit& some_limit() { return draw(4) == 0 ? low_ : limit_; }

  std::string broken_bound() const {
    for (std::size_t key = 0; key < kKeys; ++key) {
      if (net_[key] <= ceiling_[key] + 1e-6) continue;
      return "key " + std::to_string(key) + ": " + std::to_string(net_[key]) + " admitted, at most " +
             std::to_string(ceiling_[key]) + "; " + last_;
    }
    return {};
  }

  double most() const { return static_cast<double>(limit_.capacity); }
  double whole_part(const SeamNode& node) const {
    return static_cast<double>(std::max<std::int64_t>(1, fleet::part_of(limit_.capacity, node.rank)));
  }
  // This node's part of what it last heard was left. While Redis answers others, it also knows that of a key whose
  // record was evicted.
  double part_alone(const SeamNode& node, std::size_t key) const {
    const std::optional<Heard>& heard = node.line->heard[key];
    if (!heard || heard->until <= redis_.now) return whole_part(node);
    return static_cast<double>(fleet::left_of(limit_.capacity, heard->used, node.rank));
  }
  double part(const SeamNode& node, std::size_t key) const {
    return setting_.is_forgetful ? whole_part(node) : part_alone(node, key);
  }
  // A node may decide alone for a moment: other nodes do not know what it admits, nor it what they admit.
  void one_decides(const SeamNode& node) {
    disturbed_at_ = redis_.now;
    for (std::size_t key = 0; key < kKeys; ++key) {
      // While all nodes decide by shares, a node alone admits no more than its share. But if it has reported that it is
      // synced, the nodes that receive this let Redis decide alone.
      const bool are_on = std::ranges::all_of(nodes_, [&](const auto& one) { return one->is_sharing(key); });
      if (are_on && (count() == 1 || node.line->is_any_cut() || !node.report.is_synced)) continue;
      if (node.is_sharing(key) && count() > 1) {  // by a share that began earlier
        ceiling_[key] = std::max(ceiling_[key], std::max(most(), net_[key]) +
                                                    static_cast<double>(fleet::part_of(limit_.capacity, node.rank)));
      }
      if (count() == 1 && (node.line->heard[key] || !was_restarted_)) continue;  // the limit, exactly
      ceiling_[key] = std::max(ceiling_[key], std::max(most(), net_[key]) + part_alone(node, key));
    }
  }

  // A bucket drains, and a window passes.
  void pass_time() {
    if (setting_.is_short) return count_in_window();
    const double since = static_cast<double>((redis_.now - drained_at_).count());
    drained_at_ = redis_.now;
    if (!setting_.is_fast) return;
    const double drained = since * static_cast<double>(limit_.rate) / static_cast<double>(limit_.weight);
    for (std::size_t key = 0; key < kKeys; ++key) {
      net_[key] = std::max(0.0, net_[key] - drained);
      if (is_written_back(key)) ceiling_[key] += drained;
      double refill = 0;  // of all shares
      for (const auto& one : nodes_) refill += one->is_sharing(key) ? 1.0 / one->rank.nodes : 0;
      ceiling_[key] += drained * std::max(0.0, refill - 1);
    }
  }
  // What counts now, by the definition of the algorithm.
  void count_in_window() {
    for (std::size_t key = 0; key < kKeys; ++key) {
      net_[key] = 0;
      for (const auto& [at_us, permits] : admitted_[key]) net_[key] += static_cast<double>(permits) * weight_of(at_us);
      net_[key] = std::floor(net_[key] + 1e-6);  // as the algorithm rounds
    }
  }
  double weight_of(std::int64_t at_us) const {
    const std::int64_t now_us = redis_.now_us(), period_us = limit_.period_us;
    if (setting_.algorithm == Algorithm::sliding_log) return now_us - at_us < period_us ? 1 : 0;
    const std::int64_t windows = (now_us - limit_.phase_us) / period_us - (at_us - limit_.phase_us) / period_us;
    if (windows == 0) return 1;
    if (setting_.algorithm == Algorithm::fixed_window || windows > 1) return 0;
    const std::int64_t since_us = (now_us - limit_.phase_us) % period_us;
    return 1 - static_cast<double>(since_us) / static_cast<double>(period_us);
  }
  // When nothing counts anymore that was admitted while a node decided by itself, the limit is the bound again.
  void forget_disturbances() {
    if (std::ranges::any_of(nodes_, [](const auto& one) { return one->store->handover().is_on(); })) {
      disturbed_at_ = redis_.now;
    }
    if (!setting_.is_short) return;
    if (weight_of(kEpoch_us + disturbed_at_.count()) == 0) ceiling_.fill(most());
    for (auto& some : admitted_) std::erase_if(some, [this](const auto& one) { return weight_of(one.first) == 0; });
  }
  // Unsynced charges drain on a share, while Redis is asked and drains, too.
  bool is_written_back(std::size_t key) const {
    const std::string name = name_of(key);
    const auto has_unsynced = [&](const auto& one) {
      return one->store->unsynced({.key = name, .limit = &limit_}) > 0;
    };
    return std::ranges::any_of(nodes_, has_unsynced) &&
           std::ranges::any_of(nodes_, [&](const auto& one) { return !one->line->is_cut[server_of(key)]; });
  }
  void note(std::size_t key, std::int64_t admitted) { note(key, admitted, redis_.now_us()); }
  void note(std::size_t key, std::int64_t admitted, std::int64_t at_us) {
    if (!setting_.is_short) {
      net_[key] += static_cast<double>(admitted);
      return;
    }
    admitted_[key].emplace_back(at_us, admitted);
    count_in_window();
  }

  void check(SeamNode& node, std::size_t key, std::int64_t cost, const Limit& limit) {
    const std::string text = name_of(key);
    const Charge charge{.key = text, .limit = &limit, .cost = cost, .family = kFamily};
    const bool is_alone = !node.line->meanwhile && !setting_.is_small;  // nothing else changes its share
    const auto share_before = is_alone ? share_left(node, charge, key) : std::nullopt;
    const auto decision = node.store->check(charge);
    if (!decision && setting_.is_small) return;  // its table has no capacity for a log
    ASSERT_TRUE(decision) << decision.error().message;
    pass_time();
    note(key, decision->allowed ? cost : 0);
    if (!share_before || decision->allowed) return;
    ASSERT_EQ(share_left(node, charge, key), share_before) << "a denied request changes nothing; " << last_ << told();
  }
  // What is left of a node's share; nothing if it does not decide by it.
  std::optional<std::int64_t> share_left(SeamNode& node, Charge charge, std::size_t key) const {
    if (!node.is_sharing(key)) return {};
    charge.cost = 0;
    const auto seen = node.store->fallback_store().answer({.what = What::look, .charges = {&charge, 1}}, redis_.now);
    return seen ? std::optional(seen->decisions[0].remaining) : std::nullopt;
  }
  // A plain refund has no time. If it is for more than is used, what remains of it is nowhere.
  void refund(SeamNode& node, std::size_t key) {
    if (setting_.is_fast) return;  // it may exceed what has not drained
    check(node, key, -(1 + draw(3)), some_limit());
    net_[key] = std::max(0.0, net_[key]);
    is_exact_[key] = false;
  }
  // Two keys or three; in a cluster each is a part.
  std::vector<std::size_t> some_keys() {
    std::vector<std::size_t> keys{0, 1, 2, 3};
    std::ranges::shuffle(keys, dice_);
    keys.resize(static_cast<std::size_t>(2 + draw(2)));
    return keys;
  }
  std::vector<Charge> charges_of(const std::vector<std::size_t>& keys, std::vector<std::string>& names,
                                 const Limit& limit, std::int64_t cost) {
    std::vector<Charge> charges;
    names.reserve(keys.size());
    for (const std::size_t key : keys) {
      charges.push_back({.key = names.emplace_back(name_of(key)), .limit = &limit, .cost = cost, .family = kFamily});
    }
    return charges;
  }
  void check_several(SeamNode& node) {
    const std::vector<std::size_t> keys = some_keys();
    const std::int64_t cost = 1 + draw(3);
    std::vector<std::string> names;
    const auto verdict = node.store->charge(charges_of(keys, names, some_limit(), cost), 0);
    if (!verdict && setting_.is_small) return;
    ASSERT_TRUE(verdict) << verdict.error().message;
    pass_time();
    for (const std::size_t key : keys) note(key, verdict->allowed ? cost : 0);
  }
  void reserve(std::size_t place) {
    if (setting_.is_fast) return;  // what a bucket refunds depends on when
    SeamNode& node = *nodes_[place];
    Reservation made{.node = place, .id = "r" + std::to_string(next_id_++), .cost = 1 + draw(5)};
    made.keys = draw(2) == 0 ? some_keys() : std::vector{some_key()};
    made.used = draw(made.cost + 1);
    std::vector<std::string> names;
    const auto verdict = node.store->reserve(charges_of(made.keys, names, some_limit(), made.cost), made.id, kLasts, 0);
    // What was not used of one that the node made stays charged.
    for (const std::size_t key : made.keys) is_exact_[key] = false;
    if (!verdict || !verdict->allowed) return;
    for (const std::size_t key : made.keys) note(key, made.cost);
    made.charged_us = redis_.now_us();
    open_.push_back(made);
  }
  void commit() {
    if (open_.empty()) return;
    const std::size_t which = static_cast<std::size_t>(draw(static_cast<std::int64_t>(open_.size())));
    Reservation& made = open_[which];
    std::vector<std::string> names;
    SeamNode& node = *nodes_[made.node];
    const auto verdict = node.store->commit(charges_of(made.keys, names, some_limit(), made.used), made.id, 0);
    const bool is_settled = verdict.has_value();
    for (const std::size_t key : made.keys) {  // parts may be settled though others are not
      const bool is_apart = setting_.is_cluster && !node.line->is_cut[server_of(key)];
      if (!is_settled && !is_apart) continue;
      const bool is_first = std::ranges::find(made.settled, key) == made.settled.end();
      if (is_first) note(key, made.used - made.cost, made.charged_us);
      // The replica that took over may not have had this settlement. Then Redis refunds the unused part once more.
      if (!is_first && has_failed_over_) ceiling_[key] += static_cast<double>(made.cost - made.used);
      made.settled.push_back(key);
    }
    if (is_settled) open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void begin_outage(std::size_t server) {
    for (std::size_t key = 0; key < kKeys; ++key) {
      if (server_of(key) != server) continue;
      if (setting_.is_forgetful) ceiling_[key] += most();  // shares may begin again
      double parts = 0, wholes = 0;
      bool is_mixed = false;
      for (const auto& node : nodes_) {
        wholes += whole_part(*node);
        if (node->is_sharing(key)) is_mixed = true;
        if (!node->is_sharing(key)) parts += part(*node, key);
      }
      // The shares when all has recovered. Nodes may not have heard of one that has just started.
      if (setting_.is_short) ceiling_[key] = std::max(ceiling_[key], wholes);
      // Shares that go on after a flap are within the bound of the outage that they began in.
      const double known_left = std::max(0.0, most() - net_[key]);
      const bool are_all_told = !is_mixed && parts <= known_left;
      if (are_all_told) continue;
      ceiling_[key] = is_mixed ? ceiling_[key] + parts : std::max(ceiling_[key], net_[key] + parts);
    }
    is_outage_ = true;
    disturbed_at_ = redis_.now;
    for (const auto& node : nodes_) node->cut(server);
  }
  void cut_one(SeamNode& node, std::size_t server) {
    one_decides(node);
    for (std::size_t key = 0; key < kKeys; ++key) {  // also its whole share, if its handover has not ended
      if (server_of(key) != server) continue;
      if (setting_.is_forgetful) ceiling_[key] += most();
      ceiling_[key] = std::max(ceiling_[key], std::max(most(), net_[key]) + part(node, key));
    }
    node.cut(server);
  }
  void fail_over() {
    for (std::size_t key = 0; key < kKeys; ++key) {
      const std::int64_t before = used(key, redis_.database), after = used(key, snapshot_);
      if (after < before) ceiling_[key] += static_cast<double>(before - after);
    }
    redis_.database = snapshot_;
    has_failed_over_ = true;
    disturbed_at_ = redis_.now;
  }
  // What is in doubt when a node stops is written again.
  void restart(SeamNode& node) {
    node.hear_late();
    was_restarted_ = true;
    if (!node.is_synced()) is_exact_.fill(false);
    fleet::SavedFleetState kept = node.store->close();
    node.start(std::move(kept));
    one_decides(node);
    if (is_outage_ || node.line->is_any_cut()) {
      for (std::size_t key = 0; key < kKeys; ++key) ceiling_[key] += part(node, key);
    }
  }
  // Checks of other keys, for a node with a small table or memory.
  void make_noise(SeamNode& node) {
    if (setting_.is_small) {
      for (int i = 0; i < 300; ++i) {
        const std::string other = "noise" + std::to_string(next_id_++);
        static_cast<void>(node.here->check({.key = other, .limit = &limit_, .cost = 1 + draw(60), .family = kFamily},
                                           node.clock->now().count()));
      }
    }
    if (!setting_.is_forgetful) return;
    for (int i = 0; i < 8; ++i) {
      const std::string other = "noise" + std::to_string(next_id_++) + "/" + std::to_string(i);
      ASSERT_TRUE(node.store->check({.key = other, .limit = &limit_, .cost = 1, .family = kFamily}));
    }
  }

  // Also above the limit.
  std::int64_t used(std::size_t key, LuaDatabase& database) {
    Limit wide = limit_;
    wide.capacity = 1'000;
    if (setting_.algorithm != Algorithm::token_bucket) wide.permits = 1'000;
    const std::string text = name_of(key);
    const Charge charge{.key = text, .limit = &wide, .cost = 0};
    Decision decision;
    fleet::ScriptRequest request{.what = What::look, .charges = {&charge, 1}, .decisions = {&decision, 1}};
    std::swap(redis_.database, database);
    redis_.run({&request, 1});
    std::swap(redis_.database, database);
    return wide.capacity - decision.remaining;
  }

  // Redis's clock runs back. Not for buckets: they lose what had drained meanwhile, and a write-back that no longer
  // fits makes the burst larger by less than a permit. Nor for short periods: their windows would not end when the
  // bound says.
  void step_clock_back() {
    const std::int64_t step = draw(1'000'000);
    if (setting_.algorithm != Algorithm::token_bucket && !setting_.is_short) redis_.behind += Micros{step};
  }

  // What the background work does: undos, write-backs, heartbeats.
  void keep(SeamNode& node) {
    if (node.line->is_any_cut()) return turn(node);
    node.send_undos();
    static_cast<void>(node.write_back(setting_.is_cluster ? 1 : 100));
    turn(node);
  }
  void turn(SeamNode& node) {
    if (!node.line->is_any_cut()) {
      node.make_report();
      node.rank.nodes = static_cast<std::uint32_t>(count());
    }
    std::vector<fleet::Handover::Other> others;
    for (const auto& other : nodes_) {
      if (other.get() != &node) others.push_back(other->report);
    }
    node.beat(others, ++beats_, Micros::max());
  }

  bool are_all_up() const {
    return std::ranges::none_of(nodes_, [](const auto& one) { return one->line->is_any_cut(); });
  }
  void reconnect() {
    for (const auto& one : nodes_) one->line->is_cut = {};
  }
  // Redis returns just after a node has seen that it is unavailable.
  void return_while_deciding(std::size_t place, std::size_t key) {
    SeamNode& node = *nodes_[place];
    node.line->after_down = [this] { reconnect(); };
    const std::int64_t what = draw(3);
    what == 0 ? check(node, key, 1 + draw(3), some_limit()) : what == 1 ? check_several(node) : reserve(place);
    node.line->after_down = {};
  }
  // One more server starts while all reach Redis. It accepts checks after its first heartbeat. Until it has heard from
  // a server that has unsynced charges, Redis alone decides what it admits.
  void join() {
    const auto place = static_cast<std::uint32_t>(count());
    const bool is_any_sharing =
        std::ranges::any_of(nodes_, [](const auto& one) { return one->store->handover().is_on(); });
    SeamNode& node = *nodes_.emplace_back(std::make_unique<SeamNode>(redis_, place, place + 1, setting_));
    node.clock->set(Micros{kEpoch_us} + redis_.now);
    node.is_new = true;
    turn(node);
    disturbed_at_ = redis_.now;
    for (std::size_t key = 0; key < kKeys; ++key) {
      if (node.is_sharing(key)) {
        ceiling_[key] += whole_part(node);
      } else if (is_any_sharing) {
        ceiling_[key] += most();
      }
    }
  }

  // The next call fails. A connection that breaks leaves a charge in doubt.
  void draw_fate(Line& line, std::size_t server) {
    constexpr std::array kFates{Fate::unsent, Fate::lost, Fate::late, Fate::broken, Fate::broken_first};
    line.fate = kFates[static_cast<std::size_t>(draw(5))];
    line.fate_server = server;
    if (line.fate == Fate::broken || line.fate == Fate::broken_first) is_exact_.fill(false);
  }

  void step() {
    redis_.now += Micros{1'000 + draw(30'000)};
    if (draw(50) == 0) step_clock_back();
    pass_time();
    for (const auto& node : nodes_) node->clock->set(Micros{kEpoch_us} + redis_.now);
    const std::size_t place = static_cast<std::size_t>(draw(count()));
    SeamNode& node = *nodes_[place];
    const std::size_t key = some_key();
    std::int64_t what = draw(100);
    const bool is_calm = setting_.is_calm;
    forget_disturbances();
    if (is_calm && (what == 74 || (what >= 81 && what < 83))) what = 99;
    last_ = "the last step was " + std::to_string(what) + " of node " + std::to_string(place) + ", key " +
            std::to_string(key);
    if (what < 34) {
      check(node, key, 1 + draw(3), some_limit());
    } else if (is_calm && what >= 42 && what < 60) {  // as much as there is
      for (int i = 0; i < 20; ++i) check(node, key, 1 + draw(3), some_limit());
    } else if (what < 42) {
      check_several(node);
    } else if (what < 54) {  // something goes wrong with one call
      one_decides(node);
      draw_fate(*node.line, server_of(key));
      what < 49 ? check(node, key, 1 + draw(3), some_limit()) : check_several(node);
      node.line->fate = Fate::answered;
    } else if (what < 60) {  // others are decided while it is in flight, and cannot be sent
      one_decides(node);
      node.line->fate_server = server_of(key);
      node.line->meanwhile = [&] {
        for (int i = 0; i < 3; ++i) {
          node.line->fate = Fate::unsent;
          draw(3) > 0 ? check(node, key, 1 + draw(4), some_limit()) : check_several(node);
        }
        node.line->fate = Fate::answered;
      };
      draw(2) == 0 ? check(node, key, 1, some_limit()) : check_several(node);
      node.line->meanwhile = {};
    } else if (what < 64) {
      if (draw(4) == 0 && !is_calm) {
        one_decides(node);
        draw_fate(*node.line, server_of(key));
      }
      reserve(place);
      node.line->fate = Fate::answered;
    } else if (what < 67) {
      commit();
    } else if (what < 68) {
      refund(node, key);
    } else if (what < 69) {
      draw(2) == 0 && count() < 4 && are_all_up() ? join() : check(node, key, 0, some_limit());
    } else if (what < 70) {
      make_noise(node);
    } else if (what < 72) {
      node.hear_late();
    } else if (what < 74 && !is_outage_) {
      begin_outage(server_of(key));
    } else if (what < 75 && !is_outage_) {
      cut_one(node, server_of(key));
    } else if (what < 80) {
      if (draw(2) == 0) return_while_deciding(place, key);
      reconnect();
      for (const auto& one : nodes_) one->hear_late();
    } else if (what < 81) {
      snapshot_ = redis_.database;
    } else if (what < 82 && draw(4) == 0) {
      fail_over();
    } else if (what < 83 && draw(4) == 0) {
      restart(node);
    } else if (what < 86 && !is_calm) {  // a write-back that is not answered
      SeamNode& other = some_node();
      one_decides(other);
      draw_fate(*other.line, server_of(key));
      keep(other);
      other.line->fate = Fate::answered;
    } else {
      keep(some_node());
    }
    const bool is_over = std::ranges::none_of(nodes_, [](const auto& one) { return one->store->handover().is_on(); });
    if (is_over) is_outage_ = false;
  }

  // No fault any more: Redis gets every charge, and decides alone.
  std::string quiet() {
    reconnect();
    for (const auto& node : nodes_) node->hear_late();
    for (int i = 0; i < 60; ++i) {
      redis_.now += Micros{20'000};
      for (const auto& node : nodes_) keep(*node);
    }
    pass_time();
    for (const auto& node : nodes_) {
      if (!node->is_synced()) return "a node has unsynced charges at the end";
      if (node->store->handover().is_on()) return "a node still decides by its share at the end";
    }
    for (std::size_t key = 0; key < kKeys && !has_failed_over_ && !setting_.is_fast && !setting_.is_short; ++key) {
      const auto in_redis = static_cast<double>(used(key, redis_.database));
      const double wanted = net_[key];
      if (in_redis < wanted || (is_exact_[key] && in_redis > wanted)) {
        return "key " + std::to_string(key) + ": Redis has " + std::to_string(in_redis) + " of " +
               std::to_string(wanted) + " that were admitted";
      }
    }
    for (std::size_t key = 0; key < kKeys; ++key) {
      for (int i = 0; i < 100; ++i) check(some_node(), key, 1, limit_);
      ceiling_[key] = std::max(ceiling_[key], most());
    }
    return broken_bound();
  }

  static constexpr Micros kLasts{3'600'000'000};
  std::mt19937_64 dice_;
  Setting setting_;
  Limit limit_, low_;
  Redis redis_;
  LuaDatabase snapshot_;
  std::vector<std::unique_ptr<SeamNode>> nodes_;
  std::array<double, kKeys> net_{}, ceiling_{};
  std::array<bool, kKeys> is_exact_{};  // no charge stays in doubt, and no unused reservation stays charged
  std::array<std::vector<std::pair<std::int64_t, std::int64_t>>, kKeys> admitted_{};  // when, how many; if is_short
  Micros drained_at_{0};
  Micros disturbed_at_{0};  // when a node last decided by itself, or could begin to
  std::vector<Reservation> open_;
  std::uint64_t next_id_ = 0, beats_ = 0;
  bool is_outage_ = false, was_restarted_ = false, has_failed_over_ = false;
  std::string last_;
};

}  // namespace weir::test
