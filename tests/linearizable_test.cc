// Threads charge overlapping keys while the clock stands still: one order of the requests explains all answers, allowed
// and denied.
//
// The test plays many small histories: a few threads with two or three requests each. Then it searches for an order
// that gives the same answers and the same end. Keys of each algorithm, in slots and in blocks, new and old; also on a
// single processor, where the system interrupts threads in the middle of a request; in a build with the hook, at any
// access. A part runs under ThreadSanitizer.

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "algorithm/limit.h"
#include "history.h"
#include "jolt.h"
#include "processes.h"
#include "sanitized.h"
#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

constexpr std::size_t kKeys = 5;

// A request over some keys: its cost for each (0: not asked, negative: a refund), and its answer.
struct Request {
  std::vector<std::int64_t> costs;
  bool allowed = false;
};

// Charges each key its cost, or none of them if one has too little left. A refund never makes a key more than full.
bool charge(std::vector<std::int64_t>& used, const Request& request, std::span<const std::int64_t> capacity) {
  std::vector<std::int64_t> next = used;
  for (std::size_t i = 0; i < request.costs.size(); ++i) {
    const std::int64_t cost = request.costs[i];
    next[i] = std::max<std::int64_t>(0, next[i] + cost);
    if (cost > 0 && next[i] > capacity[i]) return false;
  }
  used = next;
  return true;
}

// Whether one order of the requests gives these answers, from what is used of each key at the start to that at the end.
bool explain_requests(std::span<const Event<Request>> history, std::span<const std::int64_t> capacity,
                      const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& end) {
  const auto step = [&](const auto& used, const Event<Request>& event, auto& next) {
    auto after = used;
    const bool allowed = charge(after, event.action, capacity);
    if (!event.has_ended() || allowed == event.action.allowed) next.push_back(after);
  };
  return explain(history, start, step, [&](const auto& used) { return used == end; });
}

// A history before it happens: the keys, what is used of them, and what each thread will ask.
struct Game {
  std::string prefix;
  std::array<Limit, kKeys> limits;
  std::vector<std::int64_t> capacity, spent;
  std::vector<std::vector<Request>> requests;
  unsigned solo_tries = 2;
};

Limit random_limit(std::mt19937_64& dice, std::int64_t permits) {
  const Algorithm algorithm = kChecked[pick(dice, 0, std::size(kChecked) - 1)];
  const std::int64_t hour_us = 3'600'000'000;
  return algorithm::is_bucket(algorithm) ? algorithm::make_bucket(algorithm, permits, hour_us, permits).value()
                                         : algorithm::make_window(algorithm, permits, hour_us).value();
}

Game random_game(std::mt19937_64& dice, std::uint64_t number, std::size_t threads) {
  Game game{.prefix = std::to_string(number) + "."};
  for (std::size_t k = 0; k < kKeys; ++k) {
    game.capacity.push_back(pick(dice, 1, 5));
    game.limits[k] = random_limit(dice, game.capacity[k]);
    game.spent.push_back(pick(dice, 0, 1) == 0 ? 0 : pick(dice, 1, game.capacity[k]));
  }
  const std::int64_t each = pick(dice, 2, 3);
  game.requests.resize(threads);
  for (auto& mine : game.requests) {
    for (std::int64_t i = 0; i < each; ++i) {
      Request request{.costs = std::vector<std::int64_t>(kKeys, 0)};
      for (std::int64_t many = pick(dice, 1, 3); many > 0; --many) {
        request.costs[static_cast<std::size_t>(pick(dice, 0, kKeys - 1))] =
            pick(dice, 0, 5) == 0 ? -1 : pick(dice, 1, 2);
      }
      mine.push_back(request);
    }
  }
  game.solo_tries = static_cast<unsigned>(pick(dice, 0, 2));
  return game;
}

class Player {
 public:
  explicit Player(store::MemoryStore& store) : store_(store) {}

  Result<Verdict> ask(const Game& game, const Request& request) {
    std::array<std::string, kKeys> names;
    std::vector<Charge> charges;
    for (std::size_t k = 0; k < kKeys; ++k) {
      if (request.costs[k] == 0) continue;
      names[k] = game.prefix + std::to_string(k);
      charges.push_back({names[k], &game.limits[k], request.costs[k]});
    }
    return store_.charge(charges, kNow);
  }

  // The requests of one thread. A request for one key may take the fast path of the table.
  std::vector<Event<Request>> play(const Game& game, std::size_t thread, std::atomic<std::uint64_t>& clock) {
    std::vector<Event<Request>> events;
    for (const Request& request : game.requests[thread]) {
      Event<Request> event{.action = request};
      event.begin = ++clock;
      const auto verdict = ask(game, request);
      event.end = ++clock;
      event.action.allowed = verdict && verdict->allowed;
      EXPECT_TRUE(verdict) << verdict.error().message;
      events.push_back(event);
    }
    return events;
  }

  void prepare(const Game& game) {
    for (std::size_t k = 0; k < kKeys; ++k) {
      Request first{.costs = std::vector<std::int64_t>(kKeys, 0)};
      first.costs[k] = game.spent[k];
      if (game.spent[k] == 0) continue;
      EXPECT_TRUE(ask(game, first)->allowed);
    }
  }

  std::vector<std::int64_t> spent(const Game& game) {
    std::vector<std::int64_t> all;
    for (std::size_t k = 0; k < kKeys; ++k) {
      const std::string name = game.prefix + std::to_string(k);
      all.push_back(game.capacity[k] - store_.check({name, &game.limits[k], 0}, kNow)->remaining);
    }
    return all;
  }

 private:
  store::MemoryStore& store_;
};

void pin_to_one_processor(bool one) {
  cpu_set_t set;
  CPU_ZERO(&set);
  const unsigned all = std::thread::hardware_concurrency();
  for (unsigned i = 0; i < (one ? 1 : all); ++i) CPU_SET(i, &set);
  sched_setaffinity(0, sizeof set, &set);  // where that is not allowed, it runs as it is
}

// Threads that live as long as the test: each game begins for all of them at once.
class Crew {
 public:
  Crew(store::MemoryStore& store, std::size_t threads, std::uint64_t seed, std::uint32_t yield_in)
      : player_(store), size_(threads), results_(threads) {
    for (std::size_t i = 0; i < threads; ++i) {
      threads_.emplace_back([this, i, seed, yield_in] { work(i, seed + i, yield_in); });
    }
  }
  ~Crew() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  std::vector<Event<Request>> play(const Game& game) {
    player_.prepare(game);
    game_ = &game;
    there_ = 0;
    ready_ = 0;
    ++number_;
    while (ready_ < size_) std::this_thread::yield();
    std::vector<Event<Request>> history;
    for (const auto& events : results_) history.insert(history.end(), events.begin(), events.end());
    return history;
  }

 private:
  void work(std::size_t i, std::uint64_t seed, std::uint32_t yield_in) {
    for (std::uint64_t played = 0; !is_over_;) {
      if (number_ == played) {
        std::this_thread::yield();
        continue;
      }
      ++played;
      set_jolts({.yield_in = yield_in, .solo_tries = game_->solo_tries, .spins = 0}, seed + played);
      ++there_;
      for (unsigned spins = 1; there_ < size_; ++spins) {
        if (spins % 2'000 == 0) std::this_thread::yield();
      }
      results_[i] = player_.play(*game_, i, clock_);
      set_jolts({}, 1);
      ++ready_;
    }
  }

  Player player_;
  const std::size_t size_;
  const Game* game_ = nullptr;
  std::atomic<std::uint64_t> number_{0}, clock_{0};
  std::atomic<std::size_t> there_{0}, ready_{0};
  std::atomic<bool> is_over_{false};
  std::vector<std::vector<Event<Request>>> results_;
  std::vector<std::thread> threads_;
};

std::string describe(const Game& game, const std::vector<Event<Request>>& history,
                     const std::vector<std::int64_t>& end) {
  std::string text;
  for (std::size_t k = 0; k < kKeys; ++k) {
    text += "key " + std::to_string(k) + ": " + std::string(weir::to_string(game.limits[k].algorithm)) + " " +
            std::to_string(game.spent[k]) + " of " + std::to_string(game.capacity[k]) + " spent, at last " +
            std::to_string(end[k]) + "\n";
  }
  for (const Event<Request>& event : history) {
    text += std::to_string(event.begin) + " to " + std::to_string(event.end) +
            (event.action.allowed ? " allowed" : " denied");
    text += " " + ::testing::PrintToString(event.action.costs) + "\n";
  }
  return text;
}

struct Sum {
  std::uint64_t requests = 0, denied = 0, overlapping = 0;
};

void count(const std::vector<Event<Request>>& history, Sum& sum) {
  for (std::size_t i = 0; i < history.size(); ++i) {
    ++sum.requests;
    sum.denied += history[i].action.allowed ? 0u : 1u;
    for (std::size_t j = 0; j < i; ++j) {
      sum.overlapping += history[i].begin < history[j].end && history[j].begin < history[i].end ? 1u : 0u;
    }
  }
}

void search(std::uint64_t games, std::size_t threads, std::uint32_t yield_in) {
  const std::uint64_t seed = base_seed();
  std::mt19937_64 dice(seed);
  const auto store = store::MemoryStore::open({.keys = 200'000}, std::make_shared<ManualClock>(Micros{kNow})).value();
  Player player(*store);
  Sum sum;
  {
    Crew crew(*store, threads, seed, yield_in);
    for (std::uint64_t i = 0; i < games; ++i) {
      const Game game = random_game(dice, i, threads);
      const auto history = crew.play(game);
      count(history, sum);
      const auto end = player.spent(game);
      ASSERT_TRUE(explain_requests(history, game.capacity, game.spent, end))
          << "seed " << seed << ", game " << i << ": no order explains it\n"
          << describe(game, history, end);
      for (std::size_t k = 0; k < kKeys; ++k) store->reset(game.prefix + std::to_string(k), kNow);
    }
  }
  EXPECT_EQ(faults_of(store->table().region(), Rest::all_recovered), "");
  std::cout << games << " histories, " << sum.requests << " requests, " << sum.denied << " denied, " << sum.overlapping
            << " pairs at the same time" << (are_jolts_felt() ? ", with jolts" : "") << "\n";
}

TEST(Linearizable, HasAnOrderThatExplainsEveryAnswerOfThreads) {
  for (const std::size_t threads : {2u, 3u, 4u}) search(kIsSanitized ? 750 : 4'000, threads, 50);
}

TEST(Linearizable, HasAnOrderThatExplainsEveryAnswerOnOneProcessor) {
  pin_to_one_processor(true);
  for (const std::size_t threads : {2u, 3u}) {
    for (const std::uint32_t yield_in : {6u, 60u}) search(kIsSanitized ? 750 : 1'500, threads, yield_in);
  }
  pin_to_one_processor(false);
}

TEST(LinearizableLong, HasAnOrderThatExplainsEveryAnswerOfThreads) {
  for (const std::size_t threads : {2u, 3u, 4u}) search(400'000, threads, 50);
  pin_to_one_processor(true);
  for (const std::uint32_t yield_in : {3u, 6u, 20u, 60u}) search(50'000, 3, yield_in);
  pin_to_one_processor(false);
}

}  // namespace
}  // namespace weir::test
