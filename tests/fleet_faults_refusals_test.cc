// A Redis that refuses calls counts as unavailable: fault F10 of docs/guarantees.md, with real servers of Redis that
// are out of memory, cannot save, require a password, and so on.
//
// Nodes decide by their shares, no client gets an error, and Redis decides again once it stops refusing.

#include <sys/stat.h>

#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "fleet_faults.h"

namespace weir::test {
namespace {

// `break_it` makes Redis refuse, `mend_it` ends it.
class FleetRefusals : public FleetFaults {
 protected:
  void refuses(const char* what, const std::function<void()>& break_it, const std::function<void()>& mend_it) {
    auto nodes = make_nodes(2, url(), with_deadline(kLong));
    break_it();
    Tally tally;
    EXPECT_TRUE(until([&] {
      ask(*nodes[0], "other", thousand_, tally);
      ask(*nodes[1], "other", thousand_, tally);
      return !is_strict(*nodes[0]) && !is_strict(*nodes[1]);
    })) << what;
    Tally during;
    ask_all(nodes, 40, "k", thirty_, during);
    EXPECT_EQ(during.asked(DecidedBy::local), 80) << what << ": " << during.text();
    EXPECT_EQ(during.admitted(), 30) << what;
    EXPECT_EQ(during.errors() + tally.errors(), 0) << what << ": " << during.error() << tally.error();
    EXPECT_LT(during.longest(), kOrderOfMagnitude) << what;
    mend_it();
    const std::int64_t ms = back(nodes);
    EXPECT_TRUE(until([&] { return !ask(*nodes[0], "k", thirty_, tally); }))
        << what << ": charges are not written back";
    tell("F10 " + std::string(what) + ": back after " + std::to_string(ms) + " ms; " + during.text());
  }
  // The same, with a command for each.
  using Command = std::initializer_list<std::string>;
  void refuses(const char* what, Command break_it, Command mend_it) {
    refuses(
        what, [&] { redis(break_it); }, [&] { redis(mend_it); });
  }
};

TEST_F(FleetRefusals, OutOfMemory) {
  refuses("OOM", {"CONFIG", "SET", "maxmemory", "1"}, {"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(FleetRefusals, CannotSave) {
  refuses(
      "MISCONF",
      [&] {
        ASSERT_EQ(::mkdir((server_->folder() + "/dump.rdb").c_str(), 0700), 0);  // so that no file can become it
        redis({"CONFIG", "SET", "save", "3600 1"});
        redis({"SET", "something", "1"});
        redis({"BGSAVE"});
        EXPECT_TRUE(until([&] { return redis({"SET", "something", "2"}).text.starts_with("MISCONF"); }));
      },
      [&] {
        redis({"CONFIG", "SET", "stop-writes-on-bgsave-error", "no"});
      });
}

TEST_F(FleetRefusals, PasswordIsMissing) {
  refuses(
      "NOAUTH",
      [&] {
        redis({"CONFIG", "SET", "requirepass", "secret"});
        RedisClient again(server_->port());
        again.call({"AUTH", "secret"});
        again.call({"CLIENT", "KILL", "TYPE", "normal"});
        again.call({"CLIENT", "KILL", "TYPE", "pubsub"});  // who also listens
      },
      [&] {
        RedisClient again(server_->port());
        again.call({"AUTH", "secret"});
        again.call({"CONFIG", "SET", "requirepass", ""});
      });
}

TEST_F(FleetRefusals, UserLacksARight) {
  refuses("NOPERM", {"ACL", "SETUSER", "default", "-evalsha", "-set"}, {"ACL", "SETUSER", "default", "+@all"});
}

// Redis refuses a command of the script with another text than a command of a client.
TEST_F(FleetRefusals, ScriptLacksARight) {
  for (const char* const command : {"time", "mget", "set"}) {
    ASSERT_NO_FATAL_FAILURE(start({}));
    refuses(command, {"ACL", "SETUSER", "default", std::string("-") + command}, {"ACL", "SETUSER", "default", "+@all"});
  }
}

TEST_F(FleetRefusals, Replica) { refuses("READONLY", {"REPLICAOF", "127.0.0.1", "1"}, {"REPLICAOF", "NO", "ONE"}); }

// Loading takes Redis minutes, a millisecond for each of many keys. Afterwards it has its earlier charges.
TEST_F(FleetRefusals, LoadsItsData) {
  if (redis_major_version() < 7) GTEST_SKIP() << "it cannot be made to load slowly";
  // The connections that subscribe, by their ids.
  const auto subscribers = [&] {
    std::set<std::string> out;
    std::istringstream lines(redis({"CLIENT", "LIST", "TYPE", "pubsub"}).text);
    for (std::string line; std::getline(lines, line);) out.insert(line.substr(0, line.find(' ')));
    return out;
  };
  for (const bool are_connections_lost : {false, true}) {
    start({.settings = {"--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"}});
    redis({"DEBUG", "POPULATE", "200000"});
    {
      Node before(url(), with_deadline(kLong));
      ASSERT_TRUE(until([&] { return is_strict(before); }));
      Tally spent;
      for (int i = 0; i < 30; ++i) ask(before, "spent", thirty_, spent);
      ASSERT_EQ(spent.admitted(DecidedBy::strict), 30) << spent.text();
    }
    std::thread reload;
    refuses(
        are_connections_lost ? "LOADING, all connections lost" : "LOADING",
        [&] {
          ASSERT_TRUE(until([&] { return subscribers().size() == 2; }));
          const auto before = subscribers();
          redis({"CONFIG", "SET", "key-load-delay", "1000"});
          reload = std::thread([&] { redis({"DEBUG", "RELOAD"}); });
          ASSERT_TRUE(until([&] { return redis({"GET", "x"}).text.starts_with("LOADING"); }));
          if (are_connections_lost) {
            redis({"CLIENT", "KILL", "TYPE", "pubsub"});
            for (const std::string& one : subscribers()) EXPECT_EQ(before.count(one), 0U) << one << " is still there";
          }
        },
        [&] {
          EXPECT_TRUE(redis({"GET", "x"}).text.starts_with("LOADING")) << "it was done too early";
          EXPECT_EQ(redis({"CONFIG", "SET", "key-load-delay", "0"}).text, "OK");
          if (reload.joinable()) reload.join();
        });
    Node after(url(), with_deadline(kLong));
    ASSERT_TRUE(until([&] { return is_strict(after); }));
    Tally none;
    EXPECT_FALSE(ask(after, "spent", thirty_, none)) << none.text();
    EXPECT_EQ(none.asked(DecidedBy::strict), 1) << none.text();
  }
}

TEST_F(FleetRefusals, BlockedByAScript) {
  std::thread script;
  refuses(
      "BUSY",
      [&] {
        redis({"CONFIG", "SET", "lua-time-limit", "20"});
        script = std::thread([&] { redis({"EVAL", "while true do end", "0"}); });
        EXPECT_TRUE(until([&] { return redis({"GET", "x"}).text.starts_with("BUSY"); }));
      },
      [&] {
        redis({"SCRIPT", "KILL"});
        script.join();
      });
}

}  // namespace
}  // namespace weir::test
