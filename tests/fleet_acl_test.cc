// The user that docs/fleet.md makes for Weir may do all that a fleet does and nothing else: real servers of Redis deny
// it nothing, and something as soon as any of its permissions is taken away.
//
// What was denied stands in ACL LOG. The lines are read from the page, so that they cannot be wrong there.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fleet/fleet_store.h"
#include "fleet/redis_key.h"
#include "redis_fleet.h"
#include "redis_server.h"
#include "store_fixture.h"
#include "weir/limiter.h"

namespace weir::test {
namespace {

using Words = std::vector<std::string>;

bool eventually(const std::function<bool()>& is_so, int seconds = 60) {
  for (int i = 0; i < seconds * 200; ++i) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return false;
}

// The words of the page's lines that begin so: `ACL SETUSER weir on ...` makes the user, the others add to it.
std::vector<Words> lines_of_page() {
  std::ifstream page(WEIR_SOURCE_DIR "/docs/fleet.md");
  std::vector<Words> lines;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("ACL SETUSER weir ", 0) != 0) continue;
    std::istringstream text(line.substr(0, line.find("  #")));
    Words& words = lines.emplace_back();
    for (std::string word; text >> word;) words.push_back(word);
  }
  return lines;
}

bool is_permission(const std::string& word) { return word[0] == '+' || word[0] == '~' || word[0] == '&'; }

// The line that makes the user, and one that adds to it if it has this word.
Words user_with(const std::string& addition = "") {
  Words user;
  for (const Words& line : lines_of_page()) {
    if (user.empty()) {
      user = line;
    } else if (!addition.empty() && std::ranges::find(line, addition) != line.end()) {
      user.insert(user.end(), line.begin() + 3, line.end());
    }
  }
  return user;
}

Words without(const Words& user, const std::string& permission) {
  Words less = user;
  std::erase(less, permission);
  return less;
}

struct Node {
  Node(const std::string& url, Micros beat) {
    FleetStoreOptions options{.target = redis::parse_url(url).value()};
    options.lane.deadline = Micros{2'000'000};
    options.lane.client.subscribe_gap = Micros{50'000};
    options.keeper.beat = beat;
    options.keeper.on_deaf = [this](std::string_view why) {
      const std::lock_guard lock(mutex);
      told.emplace_back(why);
    };
    options.keeper.on_unheard = [this](std::string_view why) {
      const std::lock_guard lock(mutex);
      unheard.emplace_back(why);
    };
    store = std::make_shared<FleetStore>(options);
    limiter = std::make_unique<Limiter>(LimiterOptions{.keys = 1'000, .shared = store});
  }
  std::vector<std::string> deaf() {
    const std::lock_guard lock(mutex);
    return told;
  }

  std::size_t times_unheard() {
    const std::lock_guard lock(mutex);
    return unheard.size();
  }

  std::mutex mutex;
  std::vector<std::string> told, unheard;
  std::shared_ptr<FleetStore> store;  // goes first: it tells
  std::unique_ptr<Limiter> limiter;
};

class FleetUser : public ::testing::Test {
 protected:
  // On all of them.
  std::size_t denied() const {
    std::size_t count = 0;
    for (const std::uint16_t port : ports_) count += call_redis(port, {"ACL", "LOG"}).items.size();
    return count;
  }
  std::string first_denied() const {
    for (const std::uint16_t port : ports_) {
      const resp::Value log = call_redis(port, {"ACL", "LOG"});
      std::string text;
      for (std::size_t i = 0; !log.items.empty() && i < log.items[0].items.size(); ++i) {
        text += log.items[0].items[i].text + " ";
      }
      if (!text.empty()) return text;
    }
    return "nothing";
  }
  std::int64_t calls_of(const std::string& command) const {
    std::int64_t calls = 0;
    for (const std::uint16_t port : ports_) {
      const std::string stats = call_redis(port, {"INFO", "commandstats"}).text;
      const std::size_t at = stats.find("cmdstat_" + command + ":calls=");
      if (at != stats.npos) calls += std::stoll(stats.substr(stats.find('=', at) + 1));
    }
    return calls;
  }
  void make_user(const Words& user) {
    for (const std::uint16_t port : ports_) {
      call_redis(port, {"ACL", "DELUSER", "weir"});
      RedisClient client(port);
      const resp::Value made = client.call(user);
      ASSERT_EQ(made.text, "OK");
      client.call({"ACL", "LOG", "RESET"});
    }
  }

  // All that a limiter can be asked, of two nodes by turns. Nobody waits for it to be well.
  static void ask_everything(Limiter& one, Limiter& other) {
    for (const Algorithm algorithm : kChecked) {
      const Limit limit = limit_of("10/year", algorithm);
      const std::string name(to_string(algorithm)), too = name + " too", once = name + " once", later = name + " later";
      const Charge charges[] = {{name, &limit, 2}, {too, &limit, 1}};
      const Charge single[] = {{once, &limit, 1}}, reserved[] = {{later, &limit, 3}};
      one.check(name, limit);
      other.check_all(charges);
      one.preview(name, limit);
      other.check_once(name + " id", single);
      one.check_once(name + " id", single);
      one.reserve(reserved, {.id = name});
      other.commit(name, single);
      other.commit(name, reserved);
      one.overdraw(charges);
      other.give_back(name, limit, 1);
      one.reset(name);
    }
    const Limit permits = compile("2 concurrent").value();
    one.acquire("held", "a", permits);
    other.acquire("held", "b", permits);
    other.release("held", "a");
    one.release("held", "b");
  }
  // What servers of a fleet do beside counting: they share changes, and look how Redis is.
  static void manage(Node& node) {
    SharedLog& log = node.store->keeper().log();
    if (const auto lines = log.since(0)) {
      log.append(lines->last, lines->last + 1, "line");
      log.drop({lines->last + 1});
    }
    node.store->inspect();
  }
  static bool is_strict(Node& node) {
    const Limit limit = limit_of("1000000/year", Algorithm::token_bucket);
    bool is_so = true;
    for (int i = 0; i < 8 && is_so; ++i) {  // of a cluster, on all of its servers
      const auto decision = node.limiter->check("warm " + std::to_string(i), limit);
      is_so = decision && decision->decided_by == DecidedBy::strict;
    }
    return is_so;
  }

  std::vector<std::uint16_t> ports_;
};

TEST_F(FleetUser, StandsOnThePage) {
  const auto lines = lines_of_page();
  ASSERT_EQ(lines.size(), 4u) << "the user; and what a database, a cluster and sentinels add";
  EXPECT_EQ(lines[0][3], "on");
  EXPECT_NE(std::ranges::find(lines[0], "-@all"), lines[0].end());
  EXPECT_GT(user_with("+select").size(), lines[0].size());
}

TEST_F(FleetUser, MayDoAllThatAFleetDoesAndNothingElse) {
  auto server = RedisServer::start();
  ASSERT_TRUE(server) << server.error().message;
  ports_ = {(*server)->port()};
  const Words user = user_with("+select");
  const std::string url = "redis://weir:SECRET@" + (*server)->address() + "/1";
  const auto admin = [&](std::initializer_list<std::string> words) { return call_redis(ports_[0], words); };
  ASSERT_NO_FATAL_FAILURE(make_user(user));
  {
    Node one(url, Micros{20'000}), other(url, Micros{20'000});
    ASSERT_TRUE(eventually([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    ASSERT_TRUE(eventually([&] { return one.store->seat().nodes == 2 && other.store->seat().nodes == 2; }));
    ask_everything(*one.limiter, *other.limiter);
    manage(one);
    // News of a reset reaches the other one.
    const Limit limit = limit_of("1/year", Algorithm::fixed_window);
    one.limiter->check("news", limit);
    ASSERT_TRUE(eventually([&] { return other.limiter->check("news", limit)->decided_by == DecidedBy::cached; }));
    one.limiter->reset("news");
    EXPECT_TRUE(eventually([&] { return other.limiter->check("news", limit)->decided_by == DecidedBy::strict; }));
    // Connections are cut: they are made again, and probes pass.
    admin({"CLIENT", "KILL", "USER", "weir"});
    EXPECT_TRUE(eventually([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    // The server forgets the script.
    admin({"SCRIPT", "FLUSH"});
    EXPECT_TRUE(eventually([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    const std::int64_t beats = calls_of("hgetall");
    EXPECT_TRUE(eventually([&] { return calls_of("hgetall") > beats + 10; })) << "both go on saying that they live";
    EXPECT_TRUE(eventually([&] { return one.store->keeper().nodes().size() == 2; }));
  }
  // Who ends while a connection is being made cannot say so: then another one does.
  EXPECT_TRUE(eventually([&] {
    if (calls_of("hdel") > 0) return true;
    Node another(url, Micros{20'000});
    eventually([&] { return is_strict(another); });
    return false;
  })) << "nobody says that it leaves";
  EXPECT_EQ(denied(), 0u) << first_denied();

  for (const std::string& permission : user) {
    if (!is_permission(permission)) continue;
    ASSERT_NO_FATAL_FAILURE(make_user(without(user, permission)));
    const auto breaks = [&] { return denied() > 0; };
    {
      Node one(url, Micros{20'000}), other(url, Micros{20'000});
      for (int i = 0; i < 200 && !breaks(); ++i) {
        ask_everything(*one.limiter, *other.limiter);
        manage(one);
        if (is_strict(one) && is_strict(other)) break;  // what is still missing shows at the end
      }
    }
    EXPECT_TRUE(eventually(breaks, 5)) << "it can do without " << permission;
  }
}

// Two nodes, of which none would hear that a denial is void: then none believes one.
void expect_no_denial_is_remembered(Node& one, Node& other) {
  const Limit limit = limit_of("1/year", Algorithm::fixed_window);
  one.limiter->check("deaf", limit);
  for (int i = 0; i < 50; ++i) {
    const auto denied = other.limiter->check("deaf", limit);
    ASSERT_TRUE(denied && !denied->allowed);
    ASSERT_EQ(denied->decided_by, DecidedBy::strict) << i;
  }
  ASSERT_TRUE(one.limiter->reset("deaf"));
  const auto again = other.limiter->check("deaf", limit);
  EXPECT_TRUE(again && again->allowed) << "the other one knows nothing of the reset";
  EXPECT_EQ(other.store->counts().cached.load(), 0u);
}

TEST_F(FleetUser, RemembersNoDenialWhereTheChannelIsForbidden) {
  auto server = RedisServer::start();
  ASSERT_TRUE(server) << server.error().message;
  ports_ = {(*server)->port()};
  const Words user = user_with();
  const Limit limit = limit_of("1/year", Algorithm::fixed_window);
  for (const std::string permission : {"&weir:*", "+subscribe", "+publish"}) {
    SCOPED_TRACE(permission);
    ASSERT_NO_FATAL_FAILURE(make_user(without(user, permission)));
    const std::string url = "redis://weir:SECRET@" + (*server)->address();
    Node one(url, Micros{20'000}), other(url, Micros{20'000});
    ASSERT_TRUE(eventually([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    ASSERT_TRUE(eventually([&] { return !one.deaf().empty() && !other.deaf().empty(); })) << "nobody says so";
    const std::string command = permission == "+publish" ? "PUBLISH" : "SUBSCRIBE";
    EXPECT_NE(one.deaf()[0].find(command), std::string::npos) << one.deaf()[0];
    EXPECT_NE(one.deaf()[0].find("NOPERM"), std::string::npos) << one.deaf()[0];
    EXPECT_EQ(one.store->keeper().deaf_why(), one.deaf()[0]);
    ASSERT_NO_FATAL_FAILURE(expect_no_denial_is_remembered(one, other));
    EXPECT_EQ(one.deaf().size(), 1u) << "once is enough";
    // It is mended while they run.
    ASSERT_EQ(call_redis(ports_[0], {"ACL", "SETUSER", "weir", permission}).text, "OK");
    one.limiter->check("heard", limit);
    ASSERT_TRUE(eventually([&] { return other.limiter->check("heard", limit)->decided_by == DecidedBy::cached; }));
    EXPECT_TRUE(eventually([&] { return other.deaf().back().empty(); }));
    one.limiter->reset("heard");
    EXPECT_TRUE(eventually([&] { return other.limiter->check("heard", limit)->decided_by == DecidedBy::strict; }));
    call_redis(ports_[0], {"FLUSHALL"});
  }
}

TEST_F(FleetUser, SaysOnceThatTheHeartbeatIsForbidden) {
  auto server = RedisServer::start();
  ASSERT_TRUE(server) << server.error().message;
  ports_ = {(*server)->port()};
  const Words user = user_with();
  ASSERT_NO_FATAL_FAILURE(make_user(user));
  const std::string url = "redis://weir:SECRET@" + (*server)->address();
  Node one(url, Micros{20'000}), other(url, Micros{20'000});
  ASSERT_TRUE(eventually([&] { return one.store->keeper().nodes().size() == 2; }));
  ASSERT_EQ(one.times_unheard(), 0u);
  ASSERT_EQ(call_redis(ports_[0], {"ACL", "SETUSER", "weir", "-hset"}).text, "OK");
  Keeper& keeper = one.store->keeper();
  ASSERT_TRUE(eventually([&] { return one.times_unheard() == 1; }));
  EXPECT_NE(keeper.unheard_why(), "");
  // What was known of the others grows old.
  ASSERT_TRUE(eventually([&] {
    return std::ranges::all_of(keeper.nodes(), [](const FleetNode& node) { return node.age > Micros{300'000}; });
  }));
  EXPECT_GT(keeper.heard(), Micros{280'000});
  EXPECT_EQ(one.times_unheard(), 1u) << "once is enough";
  ASSERT_EQ(call_redis(ports_[0], {"ACL", "SETUSER", "weir", "+hset"}).text, "OK");
  ASSERT_TRUE(eventually([&] { return one.times_unheard() == 2; }));
  EXPECT_EQ(keeper.unheard_why(), "");
  EXPECT_TRUE(eventually([&] { return keeper.nodes().size() == 2 && keeper.heard() < Micros{100'000}; }));
}

TEST_F(FleetUser, RemembersNoDenialWhereMessagesCannotBeHeard) {
  auto server = RedisServer::start({.settings = {"--rename-command", "HELLO", ""}});
  ASSERT_TRUE(server) << server.error().message;
  const std::string url = "redis://" + (*server)->address();
  Node one(url, Micros{20'000}), other(url, Micros{20'000});
  ASSERT_TRUE(eventually([&] { return is_strict(one) && is_strict(other); }));
  ASSERT_TRUE(eventually([&] { return !one.deaf().empty() && !other.deaf().empty(); }));
  EXPECT_NE(one.deaf()[0].find("RESP3"), std::string::npos) << one.deaf()[0];
  expect_no_denial_is_remembered(one, other);
}

TEST_F(FleetUser, MayDoAllThatAFleetDoesInAClusterAndNothingElse) {
  auto cluster = RedisCluster::start();
  ASSERT_TRUE(cluster) << cluster.error().message;
  for (std::size_t i = 0; i < 3; ++i) ports_.push_back((*cluster)->master(i).port());
  for (std::size_t i = 0; i < 3; ++i) ports_.push_back((*cluster)->replica(i).port());
  std::string addresses = (*cluster)->addresses();
  const std::string url = "redis+cluster://weir:SECRET@" + addresses;
  const bool has_shards = redis_major_version() >= 7;
  const Words user = user_with("+asking");
  ASSERT_NE(std::ranges::find(user, "+asking"), user.end());

  // A key whose slot is on its way from one server to another.
  const Limit limit = limit_of("10/year", Algorithm::fixed_window);
  const std::string slot = std::to_string(redis::slot_of(redis_name("weir:", {.key = "moving", .limit = &limit})));
  const std::size_t from = static_cast<std::size_t>(std::stoi(slot)) * 3 / 16'384, to = (from + 1) % 3;
  const auto id_of = [&](std::size_t i) { return call_redis(ports_[i], {"CLUSTER", "MYID"}).text; };
  ASSERT_EQ(call_redis(ports_[to], {"CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(from)}).text, "OK");
  ASSERT_EQ(call_redis(ports_[from], {"CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(to)}).text, "OK");

  const auto do_all = [&](const std::function<bool()>& is_enough) {
    Node one(url, Micros{60'000'000}), other(url, Micros{60'000'000});
    for (int i = 0; i < 200 && !is_enough(); ++i) {
      ask_everything(*one.limiter, *other.limiter);
      one.limiter->check("moving", limit);
      if (is_strict(one) && is_strict(other) && calls_of("asking") > 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    // Whoever only listens asks after some seconds whether anybody is there.
    eventually([&] { return is_enough() || calls_of("ping") > 0; }, 10);
  };
  for (const std::uint16_t port : ports_) call_redis(port, {"CONFIG", "RESETSTAT"});
  ASSERT_NO_FATAL_FAILURE(make_user(user));
  do_all([] { return false; });
  EXPECT_EQ(denied(), 0u) << first_denied();
  EXPECT_GT(calls_of("asking"), 0);
  EXPECT_GT(calls_of("ping"), 0);
  for (const std::string permission : {"+asking", "+ping", has_shards ? "+cluster|shards" : "+cluster|slots"}) {
    for (const std::uint16_t port : ports_) call_redis(port, {"CONFIG", "RESETSTAT"});
    ASSERT_NO_FATAL_FAILURE(make_user(without(user, permission)));
    const auto breaks = [&] { return denied() > 0; };
    do_all(breaks);
    EXPECT_TRUE(eventually(breaks, 5)) << "it can do without " << permission;
  }
}

TEST_F(FleetUser, MayDoAllThatAFleetDoesBehindSentinels) {
  auto sentinels = RedisSentinels::start();
  ASSERT_TRUE(sentinels) << sentinels.error().message;
  ports_ = {(*sentinels)->master().port()};
  const Words user = user_with("+role");
  const std::string url = "redis+sentinel://weir:SECRET@" + (*sentinels)->addresses() + "/main";
  ASSERT_NO_FATAL_FAILURE(make_user(user));
  {
    Node node(url, Micros{20'000});
    ASSERT_TRUE(eventually([&] { return is_strict(node); })) << first_denied();
    EXPECT_EQ(denied(), 0u) << first_denied();
  }
  ASSERT_NO_FATAL_FAILURE(make_user(without(user, "+role")));
  Node node(url, Micros{20'000});
  EXPECT_TRUE(eventually([&] { return denied() > 0; }));
}

}  // namespace
}  // namespace weir::test
