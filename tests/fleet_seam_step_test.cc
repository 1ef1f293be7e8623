// The seams of a fleet, one by one: each test is a sentence of docs/fleet.md, with a scripted Redis in virtual time.
//
// fleet_seam_model_test.cc mixes them at random, fleet_seam_test.cc has those that need a real Redis.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "fleet_seam_step.h"

namespace weir::test {
namespace {

// A key that the node never asked about, or that is not among the last keys in its memory.
TEST_F(FleetSeamStep, WhatANodeCannotKnowStartsWithItsShare) {
  SeamNode other(redis_, 0, 2), node(redis_, 1, 2, {.is_forgetful = true});
  ASSERT_TRUE(check(other, 100, "k0").allowed);
  ASSERT_TRUE(check(node, 90, "k1").allowed);
  ASSERT_TRUE(check(node, 90, "k2").allowed);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(check(node, 90, "a" + std::to_string(i)).allowed);
    EXPECT_FALSE(check(node, 90, "k2").allowed) << "the node checks it all the time, so it stays in the memory";
  }
  node.cut(0);
  EXPECT_EQ(admitted(node, 200, "k0"), 50) << "never asked about: 100, and its part of 100";
  EXPECT_EQ(admitted(node, 200, "k1"), 50) << "forgotten";
  EXPECT_EQ(admitted(node, 200, "k2"), 5) << "known";
}

// Two servers admit the limit in an outage, and have written nothing back when a third one starts. It has its part of
// the limit, although Redis has no charge. When the others have written back, Redis decides alone.
TEST_F(FleetSeamStep, AServerThatStartsAfterAnOutageHasItsPart) {
  for (const Algorithm algorithm : kChecked) {
    SCOPED_TRACE(to_string(algorithm));
    Redis redis;
    SeamNode a(redis, 0, 2), b(redis, 1, 2);
    const Limit sixty = limit_of("60/year", algorithm);
    const auto admitted = [&](SeamNode& node) {
      int count = 0;
      for (int i = 0; i < 100; ++i) count += node.store->check({.key = "k", .limit = &sixty})->allowed ? 1 : 0;
      return count;
    };
    std::uint64_t beats = 0;
    const auto beat = [&](std::vector<SeamNode*> nodes) {
      redis.now += Micros{100'000};
      ++beats;
      for (SeamNode* const node : nodes) node->make_report();
      for (SeamNode* const node : nodes) {
        std::vector<fleet::Handover::Other> others;
        for (const SeamNode* const other : nodes) {
          if (other != node) others.push_back(other->report);
        }
        node->beat(others, beats, Micros{60'000'000});
      }
    };
    for (SeamNode* const node : {&a, &b}) node->cut(0);
    EXPECT_EQ(admitted(a) + admitted(b), 60);
    for (SeamNode* const node : {&a, &b}) node->line->is_cut = {};

    SeamNode c(redis, 2, 3);
    c.is_new = true;
    a.rank = {0, 3};
    b.rank = {1, 3};
    beat({&a, &b, &c});
    EXPECT_EQ(admitted(c), 20) << "of 60: its part";
    EXPECT_EQ(admitted(a) + admitted(b), 0);
    for (int i = 0; i < 10; ++i) beat({&a, &b, &c});
    EXPECT_TRUE(c.store->handover().is_on()) << "nothing is written back yet";
    for (SeamNode* const node : {&a, &b}) write_back(*node);
    for (int i = 0; i < 4; ++i) beat({&a, &b, &c});
    for (SeamNode* const node : {&a, &b, &c}) {
      EXPECT_FALSE(node->store->handover().is_on());
      EXPECT_EQ(admitted(*node), 0);
    }

    SeamNode d(redis, 3, 4);
    d.is_new = true;
    beat({&a, &b, &c, &d});
    EXPECT_FALSE(d.store->handover().is_on()) << "all have written back";
  }
}

// The others wait until it has written back its charges from before its start.
TEST_F(FleetSeamStep, AServerThatStartsWithUnsyncedChargesReportsThem) {
  SeamNode node(redis_, 0, 2);
  node.make_report();
  EXPECT_TRUE(node.report.is_synced);
  node.cut(0);
  EXPECT_EQ(admitted(node, 40), 40);
  node.line->is_cut = {};
  node.start(node.store->close());
  node.make_report();
  EXPECT_FALSE(node.report.is_synced);
  write_back(node);
  node.make_report();
  EXPECT_TRUE(node.report.is_synced);
  EXPECT_EQ(check(node, 0).remaining, 60);
}

TEST_F(FleetSeamStep, ACheckCarriesTheUnsyncedChargesOfItsKey) {
  SeamNode node(redis_, 0, 1);
  ASSERT_TRUE(check(node, 10).allowed);
  node.line->fate = Fate::unsent;
  EXPECT_EQ(check(node, 30).decided_by, DecidedBy::local);
  EXPECT_EQ(node.store->unsynced({.key = "k0", .limit = &hundred_}), 30);
  node.line->fate = Fate::answered;
  const int calls = redis_.calls;
  const Decision decision = check(node, 1);
  EXPECT_EQ(decision.decided_by, DecidedBy::strict);
  EXPECT_EQ(decision.remaining, 59);
  EXPECT_EQ(redis_.calls - calls, 1) << "in the same call";
  EXPECT_TRUE(node.store->unsynced_charges().is_synced());
}

// The node knows nothing of the key, and a call about it is in flight, which may use all permits.
TEST_F(FleetSeamStep, AnUnknownKeyInOverloadIsDeniedForAMoment) {
  SeamNode node(redis_, 0, 1);
  Decision shed;
  node.line->meanwhile = [&] {
    node.line->fate = Fate::unsent;
    shed = check(node);
    node.line->fate = Fate::answered;
  };
  EXPECT_TRUE(check(node, 100).allowed);
  EXPECT_FALSE(shed.allowed);
  EXPECT_EQ(shed.decided_by, DecidedBy::overloaded);
  EXPECT_GT(shed.retry_after, Micros{0});
  EXPECT_LE(shed.retry_after, Micros{100'000}) << "Redis is well";
  EXPECT_EQ(node.store->counts().shed.get(), 1u);
}

// Calls about four keys are in flight, so a fifth key of their set gets no record. Its call is in flight, too.
TEST_F(FleetSeamStep, AKeyWithoutARecordInOverloadIsDeniedForAMoment) {
  SeamNode node(redis_, 0, 1, {.is_forgetful = true});
  Decision shed;
  const std::function<void(int)> nest = [&](int depth) {
    if (depth == 5) {
      EXPECT_EQ(admitted_unsent(node, 200, "a4"), 0);
      node.line->fate = Fate::unsent;
      shed = check(node, 1, "a4");
      node.line->fate = Fate::answered;
      return;
    }
    node.line->meanwhile = [&nest, depth] { nest(depth + 1); };
    EXPECT_TRUE(check(node, 100, "a" + std::to_string(depth)).allowed);
  };
  nest(0);
  EXPECT_EQ(shed.decided_by, DecidedBy::overloaded);
  EXPECT_EQ(admitted_unsent(node, 200, "a4"), 0) << "Redis admitted all";
}

// Redis is healthy, but checks cannot be sent. The record of a key was evicted: its clients have what the most used of
// the evicted keys has left.
TEST_F(FleetSeamStep, AForgottenKeyInOverloadHasNoMoreThanWasLeft) {
  SeamNode node(redis_, 0, 1, {.is_forgetful = true});
  const auto forget = [&] {
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(check(node, 1, "a" + std::to_string(i)).allowed);
  };
  EXPECT_EQ(admitted(node, 10, "k1"), 10);
  forget();
  int all = 10;
  for (int i = 0; i < 5; ++i) {  // each time, what was admitted is written back and forgotten
    all += admitted_unsent(node, 20, "k1");
    write_back(node);
    forget();
  }
  EXPECT_GE(all, 30) << "a client below half of its limit is served";
  EXPECT_LE(all + admitted(node, 200, "k1"), 100);
  forget();
  EXPECT_EQ(admitted(node, 200, "k0"), 100);
  forget();
  EXPECT_EQ(admitted_unsent(node, 200, "k0"), 0);
  node.line->fate = Fate::unsent;
  EXPECT_EQ(check(node, 1, "k0").decided_by, DecidedBy::overloaded);
}

// Redis is healthy, but checks cannot be sent. A server that has just started has not asked about the key yet. It
// grants its part once, until it is started again.
TEST_F(FleetSeamStep, ARestartedNodeInOverloadGrantsItsPartOnce) {
  for (const std::uint32_t nodes : {1u, 2u}) {
    Redis redis;
    SeamNode node(redis, 0, nodes);
    const int part = 100 / static_cast<int>(nodes);
    EXPECT_EQ(admitted(node, 200), 100);
    node.start(node.store->close());
    EXPECT_EQ(admitted_unsent(node, 200), part);
    write_back(node);
    EXPECT_EQ(admitted_unsent(node, 200), 0) << "the answer of the write-back is remembered";
    EXPECT_EQ(admitted(node, 200), 0);
    node.start(node.store->close());
    EXPECT_EQ(admitted(node, 1), 0);
    EXPECT_EQ(admitted_unsent(node, 200), 0) << "it has asked about the key";
  }
}

// Redis's clock is set back by half a second. What it reports then looks older than what it reported before.
TEST_F(FleetSeamStep, AClockOfRedisThatRanBackHidesNothing) {
  SeamNode other(redis_, 0, 2), node(redis_, 0, 1);
  EXPECT_TRUE(check(node, 10).allowed);
  EXPECT_TRUE(check(other, 65).allowed);
  redis_.behind += Micros{500'000};
  EXPECT_TRUE(check(node, 5).allowed);
  EXPECT_EQ(admitted_unsent(node, 200), 20);
  write_back(node);
  EXPECT_EQ(admitted(other, 200), 0);
}

// Redis may admit the call in flight. A check that cannot be sent has the rest, minus what the node admits meanwhile.
TEST_F(FleetSeamStep, WhatCannotBeSentHasWhatIsLeftWithoutWhatIsInFlight) {
  SeamNode node(redis_, 0, 1);
  ASSERT_TRUE(check(node, 20).allowed);
  int granted = 0;
  node.line->meanwhile = [&] {
    node.line->fate = Fate::unsent;
    granted = admitted(node, 200);
    node.line->fate = Fate::answered;
  };
  EXPECT_TRUE(check(node, 50).allowed);
  EXPECT_EQ(granted, 30);
  EXPECT_EQ(check(node, 0).remaining, 0);
}

// A server of a cluster charges a part of a request, but its reply comes too late, and another part is denied. The next
// turn of the background work after the reply undoes the part.
TEST_F(FleetSeamStep, APartThatTimedOutIsUndone) {
  redis_.is_cluster = true;
  SeamNode node(redis_, 0, 1, {.is_cluster = true});
  ASSERT_NO_FATAL_FAILURE(charge_denied_parts(node, Fate::late));
  const auto left = [&] { return node.store->check({.key = "k0", .limit = &ten_a_year_, .cost = 0})->remaining; };
  EXPECT_EQ(left(), 3) << "the server has charged it";
  node.send_undos();
  EXPECT_EQ(left(), 3) << "nothing is known of it yet";
  node.hear_late();
  node.send_undos();
  EXPECT_EQ(left(), 6);
  EXPECT_TRUE(node.store->unsynced_charges().is_synced());
}

// The server of the part goes down before the reply comes, for a long time. The server that denied goes down, too, and
// stays down. When the first server answers again, its connection brings the reply first: Redis answers in order. Then
// the part is undone within a second, and only once, whatever happens to the first undo.
TEST_F(FleetSeamStep, APartThatTimedOutIsUndoneWithinASecondOfItsServersReturn) {
  struct Case {
    Fate part;  // of the charge
    Fate undo;  // of the first undo
    const char* text;
  };
  constexpr Case kCases[] = {{Fate::late, Fate::answered, "all is well"},
                             {Fate::late, Fate::unsent, "the undo cannot be sent"},
                             {Fate::late, Fate::lost, "the undo times out, and Redis refuses it as too late"},
                             {Fate::late, Fate::late, "the undo times out, and Redis has executed it"},
                             {Fate::lost, Fate::answered, "the part timed out, and Redis refused it as too late"}};
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.text);
    Redis redis;
    redis.is_cluster = true;
    SeamNode node(redis, 0, 1, {.is_cluster = true});
    ASSERT_NO_FATAL_FAILURE(charge_denied_parts(node, one.part));
    const auto turn = [&](int times, bool does_answer) {
      for (int i = 0; i < times; ++i) {
        redis.now += Micros{10'000};
        if (does_answer) node.hear_late();
        node.send_undos();
      }
    };
    const auto left = [&] {
      const Charge peek{.key = "k0", .limit = &ten_a_year_, .cost = 0};
      Decision decision;
      fleet::ScriptRequest request{.what = What::look, .charges = {&peek, 1}, .decisions = {&decision, 1}};
      redis.run({&request, 1});
      return decision.remaining;
    };
    node.line->is_cut = {true, true};
    turn(1'000, false);
    EXPECT_EQ(left(), one.part == Fate::late ? 3 : 6);
    node.line->is_cut[redis.server_of("k0")] = false;
    node.line->fate = one.undo;
    turn(1, true);
    node.line->fate = Fate::answered;
    turn(98, true);
    EXPECT_EQ(left(), 6) << "within a second, while another server is still down";
    turn(1'000, true);
    EXPECT_EQ(left(), 6) << "once";
  }
}

// If a part of a request cannot be sent, this node admits its part of what was left at the last answer of Redis. The
// server that answers decides the other part.
TEST_F(FleetSeamStep, APartThatCannotBeSentHasWhatWasLeft) {
  redis_.is_cluster = true;
  SeamNode node(redis_, 0, 2, {.is_cluster = true});
  const Limit limit = limit_of("20/year", Algorithm::fixed_window);
  ASSERT_TRUE(node.store->check({.key = "k0", .limit = &limit, .cost = 8})->allowed);
  const std::array<Charge, 2> charges{Charge{.key = "k0", .limit = &limit}, Charge{.key = "k1", .limit = &limit}};
  int admitted = 0;
  for (int i = 0; i < 20; ++i) {
    node.line->fate = Fate::unsent;
    node.line->fate_server = redis_.server_of("k0");
    const auto verdict = node.store->charge(charges, 0);
    ASSERT_TRUE(verdict);
    admitted += verdict->allowed ? 1 : 0;
    EXPECT_EQ(verdict->decisions[0].decided_by, DecidedBy::local);
  }
  EXPECT_EQ(admitted, 6) << "half of what was left";
  node.line->fate = Fate::answered;
  EXPECT_EQ(node.store->check({.key = "k1", .limit = &limit, .cost = 0})->remaining, 14) << "charged in Redis";
  const auto verdict = node.store->charge(charges, 0);
  ASSERT_TRUE(verdict && verdict->allowed);
  EXPECT_EQ(verdict->decisions[0].remaining, 5) << "the part carries what the node admitted by itself";
}

// A server of a cluster is down, and another one answers. If a request cannot be sent to that one, the share of its key
// may be looked at. Redis goes on to decide the key alone, so the share begins again when that server goes down, too.
TEST_F(FleetSeamStep, AShareBeginsWhenTheServerOfItsKeyGoesDown) {
  redis_.is_cluster = true;
  for (const bool is_sent : {true, false}) {
    SCOPED_TRACE(is_sent);
    const std::string key = is_sent ? "k1" : "k3";
    SeamNode node(redis_, 0, 1, {.is_cluster = true});
    ASSERT_TRUE(check(node, 10, key).allowed);
    node.cut(redis_.server_of("k0"));
    node.line->fate_server = redis_.server_of(key);
    node.line->fate = Fate::unsent;
    const auto seen = node.store->preview({.key = key, .limit = &hundred_, .cost = 1}, 0);
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->decided_by, DecidedBy::local);
    if (is_sent) node.line->fate = Fate::answered;
    const Decision decision = check(node, 70, key);
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.decided_by, is_sent ? DecidedBy::strict : DecidedBy::local);
    node.cut(redis_.server_of(key));
    EXPECT_EQ(admitted(node, 200, key), 20);
  }
}

// The same for a key whose record was evicted, and is there again: after a late reply, or after a write-back.
TEST_F(FleetSeamStep, AForgottenShareBeginsWhenTheServerOfItsKeyGoesDown) {
  for (const Fate fate : {Fate::late, Fate::unsent}) {
    SCOPED_TRACE(fate == Fate::late ? "a late reply" : "a write-back");
    Redis redis;
    redis.is_cluster = true;
    SeamNode node(redis, 0, 1, {.is_cluster = true, .is_forgetful = true});
    node.cut(redis.server_of("k0"));
    node.line->fate_server = redis.server_of("k1");
    node.line->fate = fate;
    const Decision decision = check(node, 70, "k1");
    EXPECT_TRUE(decision.allowed);
    EXPECT_EQ(decision.decided_by, DecidedBy::local);
    node.line->fate = Fate::answered;
    for (const char* const other : {"a1", "b1", "c1", "d1"}) EXPECT_TRUE(check(node, 1, other).allowed);
    node.hear_late();
    write_back(node);
    EXPECT_TRUE(node.store->unsynced_charges().is_synced());
    node.cut(redis.server_of("k1"));
    EXPECT_EQ(admitted(node, 200, "k1"), 30);
  }
}

// A node with an old plan has heard one thing of a key: nothing is left of 100. Under its new plan of 1000 it knows no
// more: 1000 may be used.
TEST_F(FleetSeamStep, ALowerVersionThatIsUsedUpLeavesNothingOfAHigherOne) {
  for (const Algorithm algorithm : kChecked) {
    SCOPED_TRACE(to_string(algorithm));
    const Limit high = limit_of("1000/year", algorithm), low = limit_of("100/year", algorithm);
    for (const bool is_outage : {false, true}) {
      Redis redis;
      SeamNode first(redis, 0, 2), second(redis, 1, 2);
      const auto ask = [](SeamNode& node, const Limit& limit, std::int64_t cost) {
        return node.store->check({.key = "k0", .limit = &limit, .cost = cost, .family = 7})->allowed;
      };
      EXPECT_TRUE(ask(first, high, 1'000));
      EXPECT_FALSE(ask(second, low, 1));
      if (is_outage) {
        first.cut(0);
        second.cut(0);
        EXPECT_FALSE(ask(second, low, 1)) << "the share of the lower version begins first";
      }
      for (int i = 0; i < 600; ++i) {
        if (!is_outage) second.line->fate = Fate::unsent;
        ASSERT_FALSE(ask(second, high, 1)) << "after " << i << ", outage " << is_outage;
        if (is_outage) {
          ASSERT_FALSE(ask(first, high, 1));
        }
      }
    }
  }
}

// A write-back counts what was admitted, also beyond the version of the limit that it names.
TEST_F(FleetSeamStep, AWriteBackCountsBeyondTheLimit) {
  for (const Algorithm algorithm : kChecked) {
    Redis redis;
    const Limit low = limit_of("30/year", algorithm), high = limit_of("60/year", algorithm);
    Limit wide = high;
    wide.capacity = 1'000;
    if (!algorithm::is_bucket(algorithm)) wide.permits = 1'000;
    const auto ask = [&](What what, const Limit& limit, std::int64_t cost, std::string_view id = {}) {
      const Charge charge{.key = "k", .limit = &limit, .cost = cost};
      Decision decision;
      fleet::ScriptRequest request{.what = what,
                                   .charges = {&charge, 1},
                                   .id = id,
                                   .lasts = fleet::kWriteBackLasts,
                                   .decisions = {&decision, 1}};
      EXPECT_TRUE(redis.run({&request, 1}));
      return decision;
    };
    EXPECT_TRUE(ask(What::charge, low, 20).allowed);
    EXPECT_EQ(ask(What::write_back, low, 25, "a").remaining, 0) << "beyond the lower version";
    EXPECT_EQ(ask(What::look, wide, 0).remaining, 955);
    EXPECT_FALSE(ask(What::charge, low, 1).allowed);
    EXPECT_TRUE(ask(What::charge, high, 10).allowed) << "the highest version alone bounds";
    EXPECT_EQ(ask(What::write_back, low, 4, "b").remaining, 0);
    EXPECT_EQ(ask(What::write_back, high, 7, "c").remaining, 0) << "beyond the higher version";
    EXPECT_EQ(ask(What::write_back, high, 7, "c").remaining, 0) << "once";
    EXPECT_EQ(ask(What::look, wide, 0).remaining, 1'000 - 66);
    EXPECT_FALSE(ask(What::charge, high, 1).allowed);
    ask(What::overdraw, high, -10);
    EXPECT_EQ(ask(What::look, high, 0).remaining, 4) << "of what comes back, what was admitted too much is missing";
  }
}

// Redis returns while a node decides a request. The node has seen that Redis is unavailable, so its share decides. If
// it asked Redis after all, Redis would admit the request without the charges of the other node, and the share would
// admit as much once more. In a cluster, a server that may not join decides by its share, too, until it may.
TEST_F(FleetSeamStep, ARequestDuringWhichRedisReturnsIsDecidedByTheShare) {
  using Ask = std::function<Result<Verdict>(SeamNode&, std::span<const Charge>)>;
  constexpr Micros kLasts{10'000'000};
  const Ask charge = [](SeamNode& node, auto charges) { return node.store->charge(charges, 0); };
  const Ask once = [=](SeamNode& node, auto charges) {
    return node.store->charge(charges, 0, {.name = "id", .lasts = kLasts});
  };
  const Ask reserve = [=](SeamNode& node, auto charges) { return node.store->reserve(charges, "id", kLasts, 0); };
  struct Case {
    const char* text;
    const Ask& ask;
    std::size_t keys = 1;
    bool is_cluster = false;
  };
  const Case cases[] = {{"a charge", charge},
                        {"a charge of two keys", charge, 2},
                        {"a charge with an id", once},
                        {"a reservation", reserve},
                        {"a charge in a cluster", charge, 1, true},
                        {"a charge of two parts of a cluster", charge, 2, true},
                        {"a charge with an id of two parts of a cluster", once, 2, true},
                        {"a reservation of two parts of a cluster", reserve, 2, true}};
  for (const Algorithm algorithm : kChecked) {
    for (const Case& one : cases) {
      SCOPED_TRACE(std::string(to_string(algorithm)) + ", " + one.text);
      const Setting setting{.is_cluster = one.is_cluster};
      Redis redis;
      redis.is_cluster = one.is_cluster;
      SeamNode other(redis, 0, 2, setting), node(redis, 1, 2, setting);
      const Limit limit = limit_of("100/year", algorithm);
      const Charge charges[] = {{.key = "k0", .limit = &limit, .cost = 2}, {.key = "k1", .limit = &limit, .cost = 2}};
      const auto admit = [&](SeamNode& its) {
        int count = 0;
        for (int i = 0; i < 200; ++i) count += its.store->check({.key = "k0", .limit = &limit})->allowed ? 1 : 0;
        return count;
      };
      for (SeamNode* const its : {&other, &node}) {
        its->line->is_barred = true;
        its->store->handover().begin();
      }
      EXPECT_EQ(admit(other), 50);
      node.line->after_down = [&] { other.line->is_barred = node.line->is_barred = false; };
      const auto verdict = one.ask(node, std::span(charges).first(one.keys));
      ASSERT_TRUE(verdict && verdict->allowed);
      node.line->after_down = {};
      other.line->is_barred = node.line->is_barred = false;
      EXPECT_EQ(admit(node) + admit(other), 48);
      for (SeamNode* const its : {&other, &node}) write_back(*its);
      EXPECT_EQ(admit(node) + admit(other), 0);
    }
  }
}

// A check has seen that Redis is unavailable, and its thread stalls. Until the charge is booked, this node does not
// report that it is synced. If Redis is back before, it is asked.
TEST_F(FleetSeamStep, ACheckThatStallsBooksNothingAfterTheReport) {
  for (const bool is_back_first : {true, false}) {
    SCOPED_TRACE(is_back_first);
    SeamNode node(redis_, 0, 1);
    std::uint64_t beats = 0;
    const auto beat = [&](int times) {
      for (int i = 0; i < times; ++i) {
        redis_.now += Micros{100'000};
        node.beat({}, ++beats, Micros{60'000'000});
      }
      node.make_report();
    };
    node.cut(0);
    beat(2);
    EXPECT_FALSE(node.report.is_synced);
    const auto stall = [&] {
      node.line->is_cut = {};
      beat(5);
    };
    node.line->after_down = [&] { is_back_first ? stall() : void(node.line->after_down = stall); };
    const Decision decision = check(node, 10);
    EXPECT_EQ(decision.decided_by, is_back_first ? DecidedBy::strict : DecidedBy::local);
    EXPECT_EQ(node.report.is_synced, is_back_first) << "what it reported while the thread stalled";
    EXPECT_EQ(node.store->unsynced_charges().is_synced(), is_back_first);
    write_back(node);
    beat(5);
    EXPECT_TRUE(node.report.is_synced);
    EXPECT_FALSE(node.store->handover().is_on());
    redis_.database = {};
  }
}

// Redis executes a write-back whose reply is lost. The node sends it again, and Redis applies it once.
TEST_F(FleetSeamStep, AWriteBackThatIsAnsweredTooLateIsAppliedOnce) {
  SeamNode node(redis_, 0, 1);
  node.cut(0);
  EXPECT_EQ(admitted(node, 40), 40);
  node.line->is_cut = {};
  for (const Fate fate : {Fate::late, Fate::broken, Fate::answered}) {
    node.line->fate = fate;
    ASSERT_TRUE(node.write_back(100));
  }
  EXPECT_TRUE(node.store->unsynced_charges().is_synced());
  SeamNode next(redis_, 0, 1);
  EXPECT_EQ(check(next, 0).remaining, 60);
}

}  // namespace
}  // namespace weir::test
