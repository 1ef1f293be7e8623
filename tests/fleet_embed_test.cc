// weir/fleet.h, as a service that embeds Weir uses it: opened by an address, with calls that wait and calls that do
// not, driven by a thread or by the caller's loop, ended while calls are in flight. On real servers of Redis.

#include "weir/fleet.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "redis_fixture.h"
#include "store_fixture.h"
#include "until.h"

namespace weir::test {
namespace {

constexpr Micros kWaitMax{60'000'000};  // machines that run tests are busy

// A process of a fleet, with a Limiter and an AsyncLimiter.
struct Service {
  explicit Service(const std::string& url, FleetOptions options = {}, AsyncOptions asyncs = {}) {
    options.url = url;
    if (options.deadline == FleetOptions{}.deadline) options.deadline = Micros{5'000'000};
    fleet = std::make_unique<weir::Fleet>(open_fleet(options).value());
    limiter = std::make_unique<Limiter>(LimiterOptions{.keys = 10'000, .shared = fleet->store()});
    async = std::make_unique<AsyncLimiter>(*limiter, *fleet, asyncs);
    EXPECT_TRUE(fleet->wait_until_strict(kWaitMax));
  }

  Result<Verdict> ask(std::span<const Charge> charges) {
    std::promise<Result<Verdict>> told;
    async->check(charges, [&](Result<Verdict> verdict) { told.set_value(std::move(verdict)); });
    return told.get_future().get();
  }
  // Waits until the AsyncLimiter is connected, too.
  void warm_up() {
    const Limit limit = limit_of("1000000/year", Algorithm::token_bucket);
    const Charge charge{"warm", &limit};
    EXPECT_TRUE(until([&] {
      const auto verdict = ask({&charge, 1});
      return verdict && verdict->decisions[0].decided_by == DecidedBy::strict;
    }));
  }

  std::unique_ptr<weir::Fleet> fleet;
  std::unique_ptr<Limiter> limiter;
  std::unique_ptr<AsyncLimiter> async;
};

class FleetEmbedded : public RedisTest {};
class FleetEmbeddedOnCluster : public RedisClusterTest {};

TEST(FleetOpening, RefusesInvalidOptions) {
  const auto says = [](FleetOptions options) {
    if (options.url.empty()) options.url = "redis://127.0.0.1:1";
    const auto fleet = open_fleet(std::move(options));
    return fleet ? std::string() : fleet.error().message;
  };
  EXPECT_EQ(says({}), "") << "an unreachable Redis is no error";
  EXPECT_NE(says({.url = "http://redis"}), "");
  EXPECT_NE(says({.prefix = ""}).find("1 to 64 bytes"), std::string::npos);
  EXPECT_NE(says({.prefix = "a{b}"}).find("no braces"), std::string::npos);
  EXPECT_NE(says({.deadline = Micros{999}}).find("999 us"), std::string::npos);
  EXPECT_NE(says({.deadline = Micros{60'000'001}}).find("1 ms to 60 s"), std::string::npos);
  EXPECT_NE(says({.remembered_keys = std::size_t{1} << 30}).find("16777216"), std::string::npos);
  EXPECT_NE(says({.label = std::string(201, 'x')}).find("200 bytes"), std::string::npos);
}

TEST(FleetOpening, DecidesAloneWhileRedisIsUnreachable) {
  std::atomic<int> lines{0};
  const weir::Fleet fleet =
      open_fleet(
          {.url = "redis://127.0.0.1:1",
           .log = [&](std::string_view line) { lines += line.starts_with("Redis at 127.0.0.1:1: no connection"); }})
          .value();
  Limiter limiter({.keys = 1'000, .shared = fleet.store()});
  AsyncLimiter async(limiter, fleet);
  const Limit limit = limit_of("3/year", Algorithm::token_bucket);
  const Charge charge{"k", &limit};
  int admitted = 0;
  for (int i = 0; i < 10; ++i) {
    std::promise<Result<Verdict>> told;
    async.check({&charge, 1}, [&](Result<Verdict> verdict) { told.set_value(std::move(verdict)); });
    const auto verdict = told.get_future().get();
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->decisions[0].decided_by, DecidedBy::local);
    admitted += verdict->allowed;
  }
  EXPECT_EQ(admitted, 3);
  EXPECT_FALSE(fleet.is_strict());
  EXPECT_FALSE(fleet.wait_until_strict(Micros{2'000}));
  EXPECT_EQ(fleet.stats().fallback, 10u);
  EXPECT_TRUE(until([&] { return lines > 0; })) << "the log says why";
}

TEST_F(FleetEmbedded, GivesTheSameAnswersWithAndWithoutWaiting) {
  Service one(url()), other(url());
  one.warm_up();
  other.warm_up();
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("6/year", algorithm), wide = limit_of("60/year", algorithm);
    const std::string name(weir::to_string(algorithm)), name_wide = name + " wide";
    const Charge both[] = {{name, &limit, 2}, {name_wide, &wide, 1}};
    for (int i = 0; i < 5; ++i) {
      const auto waited = one.limiter->check_all(both);
      const auto told = other.ask(both);
      ASSERT_TRUE(waited && told);
      EXPECT_EQ(waited->allowed, 2 * i < 3) << name << ", " << i;
      EXPECT_EQ(told->allowed, 2 * i + 1 < 3) << name << ", " << i;
      if (told->allowed) {
        EXPECT_EQ(told->decisions[0].remaining, waited->decisions[0].remaining - 2) << name;
      }
      EXPECT_EQ(told->decisions.size(), 2u);
      EXPECT_EQ(told->decisions[1].decided_by, DecidedBy::strict);
    }
    EXPECT_TRUE(until([&] {
      const Charge single{name, &limit, 1};
      const auto known = other.ask({&single, 1});
      return known && !known->allowed && known->decisions[0].decided_by == DecidedBy::cached;
    })) << "a denial that cannot have changed is not asked for again";
    EXPECT_EQ(other.limiter->check(name, limit)->decided_by, DecidedBy::cached) << "by whichever way";
  }
  EXPECT_GT(other.fleet->stats().cached, 0u);
  EXPECT_GT(other.fleet->stats().strict, 0u);
  EXPECT_EQ(other.fleet->stats().fallback + one.fleet->stats().fallback, 0u);
}

TEST_F(FleetEmbedded, ReturnsTheErrorOfTheLimiterForAWrongRequest) {
  Service service(url());
  const Limit limit = limit_of("6/year", Algorithm::fixed_window), none{};
  const std::vector<std::vector<Charge>> wrong = {{},
                                                  {{"", &limit}},
                                                  {{"k", nullptr}},
                                                  {{"k", &none}},
                                                  {{"k", &limit}, {"", &limit}},
                                                  std::vector<Charge>(kChargesMax + 1, Charge{"k", &limit})};
  for (const std::vector<Charge>& charges : wrong) {
    const auto told = service.ask(charges), waited = service.limiter->check_all(charges);
    ASSERT_FALSE(told);
    ASSERT_FALSE(waited);
    EXPECT_EQ(told.error().message, waited.error().message);
  }
}

// The caller may destroy the key and the limit of a request as soon as the call returns.
TEST_F(FleetEmbedded, AdmitsExactlyTheLimitFromManyThreads) {
  Service one(url()), other(url());
  one.warm_up();
  other.warm_up();
  std::atomic<int> admitted{0}, told{0}, wrong{0};
  on_threads(4, [&](int i) {
    for (int k = 0; k < 500; ++k) {
      const auto limit = std::make_unique<Limit>(limit_of("700/year", Algorithm::sliding_window));
      const auto key = std::make_unique<std::string>("a key that is long enough to lie on the heap");
      const Charge charge{*key, limit.get()};
      (i % 2 == 0 ? one : other).async->check({&charge, 1}, [&](Result<Verdict> verdict) {
        admitted += verdict && verdict->allowed;
        wrong += !verdict || verdict->decisions[0].limit != 700;
        ++told;
      });
    }
  });
  EXPECT_TRUE(until([&] { return told == 2'000; })) << told;
  EXPECT_EQ(admitted, 700);
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(until([&] { return one.async->in_flight() == 0; }));
}

TEST_F(FleetEmbedded, AnswersEachRequestOnceWhenItEndsAndBoundsThoseInFlight) {
  Service service(url(), {}, {.in_flight_max = 300});
  service.warm_up();
  EXPECT_TRUE(until([&] { return service.async->in_flight() == 0; }));
  const Limit limit = limit_of("1000000/year", Algorithm::fixed_window);
  const Charge charge{"k", &limit};
  std::vector<std::atomic<int>> told(400);
  std::atomic<int> full{0}, answered{0};
  server_->pause();
  for (std::atomic<int>& one : told) {
    service.async->check({&charge, 1}, [&](Result<Verdict> verdict) {
      ++one;
      ++(verdict ? answered : full);
    });
  }
  EXPECT_EQ(full, 100) << "as many as may be are under way, the others know at once";
  EXPECT_FALSE(service.async->run([] {}, [] {}));
  EXPECT_EQ(service.async->in_flight(), 300u);
  server_->resume();
  service.async.reset();
  for (const std::atomic<int>& one : told) EXPECT_EQ(one, 1);
  EXPECT_EQ(answered, 300);
  const Decision last = service.limiter->check("k", limit).value();
  if (service.fleet->stats().fallback == 0) {
    EXPECT_EQ(last.remaining, 1'000'000 - 301) << "each was charged";
  }
}

TEST_F(FleetEmbedded, AnswersEachRequestOnceWhenRedisIsKilled) {
  Service service(url(), {.deadline = Micros{500'000}});
  service.warm_up();
  const Limit limit = limit_of("100/year", Algorithm::fixed_window);
  const Charge charge{"k", &limit};
  std::vector<std::atomic<int>> told(200);
  std::atomic<int> admitted{0};
  server_->pause();
  for (std::atomic<int>& one : told) {
    service.async->check({&charge, 1}, [&](Result<Verdict> verdict) {
      ++one;
      admitted += verdict && verdict->allowed;
    });
  }
  server_->kill();
  service.async.reset();
  for (const std::atomic<int>& one : told) EXPECT_EQ(one, 1);
  EXPECT_EQ(admitted, 100) << "it is the only node, so its share is the limit";
  EXPECT_GE(service.fleet->stats().fallback, 200u);
}

// A callback that makes a request while the AsyncLimiter ends gets an error.
TEST_F(FleetEmbedded, RefusesNewRequestsOnceItEnds) {
  Service service(url());
  service.warm_up();
  const Limit limit = limit_of("1000000/year", Algorithm::fixed_window);
  const Charge charge{"k", &limit};
  std::atomic<int> first{0}, refused{0};
  AsyncLimiter* const async = service.async.get();
  std::promise<void> ending;
  async->check({&charge, 1}, [&](const Result<Verdict>&) {
    ending.get_future().wait();
    while (async->run([] {}, [] {})) std::this_thread::yield();
    async->check({&charge, 1}, [&](Result<Verdict> verdict) { refused += !verdict; });
    ++first;
  });
  std::thread end([&] { service.async.reset(); });
  ending.set_value();
  end.join();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(refused, 1);
}

TEST_F(FleetEmbedded, IsDrivenByTheLoopOfTheCaller) {
  Service service(url(), {}, {.driving = Driving::by_hand});
  const Limit limit = limit_of("10/year", Algorithm::token_bucket);
  const Charge charge{"k", &limit};
  const std::thread::id here = std::this_thread::get_id();
  int admitted = 0, told = 0, elsewhere = 0;
  const auto drive = [&](int wanted) {
    for (int turns = 0; told < wanted && turns < 100'000; ++turns) {
      pollfd watched{service.async->descriptor(), POLLIN, 0};
      ASSERT_EQ(::poll(&watched, 1, 20'000), 1) << "nothing happens";
      service.async->turn();
    }
  };
  bool is_strict = false;
  for (int i = 0; i < 1'000 && !is_strict; ++i) {  // its connection is made by turns, too
    const Charge peek{"k", &limit, 0};
    service.async->check({&peek, 1}, [&](Result<Verdict> verdict) {
      is_strict = verdict && verdict->decisions[0].decided_by == DecidedBy::strict;
      ++told;
    });
    ASSERT_NO_FATAL_FAILURE(drive(i + 1));
  }
  ASSERT_TRUE(is_strict);
  told = 0;
  for (int i = 0; i < 30; ++i) {
    service.async->check({&charge, 1}, [&](Result<Verdict> verdict) {
      admitted += verdict && verdict->allowed;
      elsewhere += std::this_thread::get_id() != here;
      ++told;
    });
  }
  EXPECT_EQ(told, 0);
  ASSERT_NO_FATAL_FAILURE(drive(30));
  EXPECT_EQ(told, 30);
  EXPECT_EQ(admitted, 10);
  EXPECT_EQ(elsewhere, 0);
  service.async->check({&charge, 1}, [&](const Result<Verdict>&) { ++told; });
  service.async.reset();
  EXPECT_EQ(told, 31) << "the end is a turn as well";
}

TEST_F(FleetEmbedded, RunsEveryCallOfALimiter) {
  Service one(url()), other(url());
  one.warm_up();
  other.warm_up();
  const Limit limit = limit_of("10/year", Algorithm::fixed_window), permits = compile("2 concurrent").value();
  std::promise<std::string> told;
  std::string found;
  EXPECT_TRUE(one.async->run(
      [&] {
        const Charge most{"k", &limit, 8}, actual{"k", &limit, 3};
        const auto reserved = one.limiter->reserve({&most, 1});
        found += reserved && reserved->verdict.allowed ? "reserved, " : "not reserved, ";
        const auto settled = one.limiter->commit(reserved->id, {&actual, 1});
        found += std::to_string(settled ? settled->decisions[0].remaining : -1) + " left, ";
        found += one.limiter->acquire("c", "a", permits)->allowed ? "acquired, " : "not acquired, ";
        found += one.limiter->release("c", "a").value() ? "released, " : "not released, ";
        found += one.limiter->reset("k").value() ? "reset" : "not reset";
      },
      [&] { told.set_value(found); }));
  EXPECT_EQ(told.get_future().get(), "reserved, 7 left, acquired, released, reset");
  EXPECT_EQ(other.limiter->check("k", limit)->remaining, 9);
}

// The queue of waiters has a lock. No task may keep that lock while another task runs.
TEST_F(FleetEmbedded, WorkMayWaitForPermitsBesideOtherWork) {
  auto service = std::make_unique<Service>(url());
  service->warm_up();
  Limiter& limiter = *service->limiter;
  const Limit few = limit_of("3/year", Algorithm::fixed_window),
              queue = limit_of("10/hour burst 8", Algorithm::leaky_bucket);
  const Limit wide = limit_of("1000000/year", Algorithm::fixed_window);
  constexpr int kEach = 20;
  std::atomic<int> allowed{0}, denied{0}, admitted{0}, cancelled{0}, failed{0}, done{0};
  const auto finish = [&] { ++done; };
  for (int i = 0; i < kEach; ++i) {
    service->async->run(
        [&] {
          limiter.wait_async("k", few, limiter.now() + Micros{1'000'000},
                             [&](const Result<Decision>& turn) { ++(turn && turn->allowed ? allowed : denied); });
        },
        finish);
    service->async->run(
        [&] {
          const auto told = [&](const Result<Decision>& turn) { ++(turn ? admitted : cancelled); };
          const WaitId id = limiter.wait_async("q", queue, limiter.now() + Micros{36'000'000'000}, told);
          if (id != 0 && !limiter.cancel_wait(id)) ++failed;
        },
        finish);
    service->async->run(
        [&] {
          const Charge most{"r", &wide, 8}, actual{"r", &wide, 3};
          const auto reserved = limiter.reserve({&most, 1});
          const bool is_well = reserved && limiter.commit(reserved->id, {&actual, 1}) && limiter.refund("r", wide, 1) &&
                               limiter.reset("r");
          failed += is_well ? 0 : 1;
        },
        finish);
  }
  if (!until([&] { return done == 3 * kEach; })) {
    static_cast<void>(service.release());  // its destructor would wait forever
    FAIL() << done << " of " << 3 * kEach << " have ended";
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(allowed, 3);
  EXPECT_EQ(denied, kEach - 3);
  EXPECT_EQ(admitted, 1) << "nobody is before it; the others are cancelled, and leave nothing behind";
  EXPECT_EQ(cancelled, kEach - 1);
  EXPECT_EQ(limiter.peek("q", queue)->remaining, 7);
  EXPECT_EQ(limiter.waiting(), 0u);
}

TEST_F(FleetEmbedded, WorkMustNotBlock) {
  Service service(url());
  const Limit limit = limit_of("1000000/year", Algorithm::fixed_window);
  std::promise<std::string> told;
  std::string found;
  service.async->run(
      [&] {
        const auto waited = service.limiter->wait("k", limit, service.limiter->now() + Micros{1'000'000});
        found = waited ? "waited" : waited.error().message;
      },
      [&] { told.set_value(found); });
  const std::string said = told.get_future().get();
  EXPECT_NE(said.find("use wait_async()"), std::string::npos) << said;
}

TEST_F(FleetEmbedded, ReportsNodesAndWhetherRedisIsAvailable) {
  Service one(url(), {.label = "first"}), other(url(), {.label = "second"});
  ASSERT_TRUE(until([&] { return one.fleet->nodes().size() == 2; }));
  int self = 0;
  std::string says;
  for (const weir::Fleet::Node& node : one.fleet->nodes()) {
    self += node.is_self && node.label == "first";
    says += node.is_self ? "" : node.label;
    EXPECT_FALSE(node.id.empty());
  }
  EXPECT_EQ(self, 1);
  EXPECT_EQ(says, "second");
  EXPECT_TRUE(one.fleet->is_strict());
  server_->kill();
  EXPECT_TRUE(until([&] { return !one.fleet->is_strict(); }));
  const Limit limit = limit_of("10/year", Algorithm::fixed_window);
  const Charge charge{"k", &limit};
  ASSERT_TRUE(until([&] { return one.ask({&charge, 1})->decisions[0].decided_by == DecidedBy::local; }));
  EXPECT_GT(one.fleet->stats().fallback, 0u);
  ASSERT_TRUE(server_->restart());
  EXPECT_TRUE(one.fleet->wait_until_strict(kWaitMax));
  EXPECT_TRUE(until([&] { return one.fleet->stats().synced_permits > 0; }));
}

// A child that inherits a fleet decides alone. It does not block, and its end does not affect the parent.
TEST_F(FleetEmbedded, DecidesAloneInAChildThatInheritsIt) {
  auto service = std::make_unique<Service>(url());
  service->warm_up();
  const Limit limit = limit_of("10/year", Algorithm::fixed_window);
  EXPECT_EQ(service->limiter->check("k", limit)->decided_by, DecidedBy::strict);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);
    const auto decision = service->limiter->check("other", limit);
    const bool is_local = decision && decision->allowed && decision->decided_by == DecidedBy::local;
    service.reset();
    ::_exit(is_local ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(service->limiter->check("k", limit)->remaining, 8);
  EXPECT_EQ(service->limiter->check("k", limit)->decided_by, DecidedBy::strict);
}

// The child has copies of locks that other threads of its parent held at the fork, and no thread unlocks them.
TEST_F(FleetEmbedded, BlocksInNoChildThoughOtherThreadsWereBusy) {
  Service service(url());
  service.warm_up();
  const Limit limit = limit_of("1/year", Algorithm::fixed_window);
  const std::jthread busy([&](const std::stop_token& stop) {  // mostly a cached denial
    while (!stop.stop_requested()) static_cast<void>(service.limiter->check("k", limit));
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(120);
      const Charge back{"k", &limit, -1};
      const bool is_told = service.limiter->check("k", limit) && service.limiter->check_all({&back, 1});
      ::_exit(is_told ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "child " << i;
    if (status != 0) break;
  }
}

// A request over keys on several servers is charged in whole or not at all.
TEST_F(FleetEmbeddedOnCluster, ChargesARequestOnSeveralServersOrNowhere) {
  Service service(url());
  const Limit wide = limit_of("1000/year", Algorithm::fixed_window),
              narrow = limit_of("60/year", Algorithm::sliding_log);
  std::vector<std::string> users;
  for (int i = 0; i < 10; ++i) users.push_back("user " + std::to_string(i));
  for (const std::string& user : users) {  // until each server of Redis has been spoken to
    const Charge peek{user, &wide, 0};
    ASSERT_TRUE(until([&] { return service.ask({&peek, 1})->decisions[0].decided_by == DecidedBy::strict; }));
  }
  std::atomic<int> admitted{0}, told{0}, fallback{0};
  for (std::size_t i = 0; i < 300; ++i) {
    const Charge charges[] = {{users[i % 10], &wide}, {"all", &narrow}};
    service.async->check(charges, [&](Result<Verdict> verdict) {
      admitted += verdict && verdict->allowed;
      fallback += !verdict || verdict->decisions[0].decided_by == DecidedBy::local ||
                  verdict->decisions[1].decided_by == DecidedBy::local;
      ++told;
    });
  }
  ASSERT_TRUE(until([&] { return told == 300; }));
  EXPECT_EQ(admitted, 60);
  EXPECT_EQ(fallback, 0);
  std::int64_t spent = 0;
  for (const std::string& user : users) {
    const Decision seen = service.limiter->peek(user, wide).value();
    EXPECT_EQ(seen.decided_by, DecidedBy::strict);
    spent += 1'000 - seen.remaining;
  }
  EXPECT_EQ(spent, 60) << "denied requests were charged nothing";
  EXPECT_GT(service.fleet->stats().refunds, 0u);
  EXPECT_EQ(service.fleet->stats().failed_refunds, 0u);
}

}  // namespace
}  // namespace weir::test
