// Many threads and several processes on one state file: exact totals, for processes that opened it or inherited it by
// fork().
//
// With a frozen clock, admitted == min(offered, limit). With the table's own clock, which all processes share, no
// interval has more than a limit allows, though participants are stopped at any moment and keys come and go.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "processes.h"
#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

std::unique_ptr<store::MemoryStore> open_store(const std::string& file, std::size_t keys = 2'000) {
  return store::MemoryStore::open({.keys = keys, .file = file}, std::make_shared<ManualClock>(Micros{kNow})).value();
}

// Threads of this process; processes that open the file; or children that inherit the open file.
enum class Kind : std::uint8_t { threads, processes, children };
struct Crew {
  Kind kind;
  int size;
};
constexpr Crew kCrews[] = {{Kind::threads, 1},   {Kind::threads, 2},  {Kind::threads, 4},
                           {Kind::threads, 8},   {Kind::threads, 16}, {Kind::processes, 2},
                           {Kind::processes, 4}, {Kind::children, 2}, {Kind::children, 4}};
std::string to_string(const Crew& crew) {
  const char* const names[] = {" threads", " processes", " children"};
  return std::to_string(crew.size) + names[static_cast<int>(crew.kind)];
}

// Calls work(store, i) in each thread or process; all begin at once.
using Work = std::function<bool(store::MemoryStore&, int)>;
bool run(const Crew& crew, const std::string& file, store::MemoryStore& own, const Work& work) {
  const Shared<Gate> gate;
  std::atomic<bool> well{true};
  if (crew.kind == Kind::threads) {
    on_threads(crew.size, [&](int i) {
      gate->pass(crew.size);
      if (!work(own, i)) well = false;
    });
    return well;
  }
  std::vector<Process> processes;
  for (int i = 0; i < crew.size; ++i) {
    processes.emplace_back([&, i] {
      const auto opened = crew.kind == Kind::processes ? open_store(file) : nullptr;
      gate->pass(crew.size);
      return work(opened ? *opened : own, i);
    });
  }
  for (Process& process : processes) well = process.join() && well;
  return well;
}

// For each kind of crew a file of its own.
template <class Body>
void for_each_crew(const Body& body) {
  const base::TestFolder folder;
  for (const Crew& crew : kCrews) {
    SCOPED_TRACE(to_string(crew));
    const std::string file = folder.at("state");
    {
      const auto own = open_store(file);
      body(crew, file, *own);
      EXPECT_EQ(faults_of(own->table().region(), Rest::somebody_may_have_died), "");
    }
    std::remove(file.c_str());
  }
}

Decision charge(store::MemoryStore& store, std::string_view key, const Limit& limit, std::int64_t cost) {
  const auto decision = store.check({key, &limit, cost}, kNow);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision.value_or(Decision{});
}

TEST(Processes, AdmitExactlyTheLimit) {
  constexpr std::int64_t kOffered[] = {900, 1'000, 3'000};
  for_each_crew([&](const Crew& crew, const std::string& file, store::MemoryStore& own) {
    const Shared<std::atomic<std::int64_t>> admitted(std::size(kChecked) * std::size(kOffered));
    EXPECT_TRUE(run(crew, file, own, [&](store::MemoryStore& store, int which) {
      std::size_t place = 0;
      for (const Algorithm algorithm : kChecked) {
        const Limit limit = compile("1000/minute", algorithm).value();
        for (const std::int64_t offered : kOffered) {
          const std::string key = "k" + std::to_string(offered);
          std::int64_t mine = 0;
          for (std::int64_t i = which; i < offered; i += crew.size) {
            const Charge one{key, &limit, 1};  // one half goes the fast way, the other half does not
            const bool fast = i % 2 == 0;
            const auto single = fast ? store.check(one, kNow) : Result<Decision>{};
            const auto verdict = fast ? Result<Verdict>{} : store.charge({&one, 1}, kNow);
            if (!single || !verdict) return false;
            mine += (fast ? single->allowed : verdict->allowed) ? 1 : 0;
          }
          admitted[place++] += mine;
        }
      }
      return true;
    }));
    std::size_t place = 0;
    for (const Algorithm algorithm : kChecked) {
      for (const std::int64_t offered : kOffered) {
        EXPECT_EQ(admitted[place++], std::min<std::int64_t>(offered, 1'000)) << weir::to_string(algorithm);
      }
    }
  });
}

// An idle process keeps no record of the table that another process needs, however many are idle.
TEST(Processes, AreServedHoweverManyAreIdle) {
  constexpr int kProcesses = 270;
  static_assert(kProcesses > table::kParticipants);
  const base::TestFolder folder;
  const std::string file = folder.at("state");
  const auto own = open_store(file);
  const Limit limit = algorithm::make_window(Algorithm::fixed_window, 1'000'000, 3'600'000'000).value();
  const Shared<Gate> gates(3);
  std::vector<Process> processes;
  processes.reserve(kProcesses);
  for (int i = 0; i < kProcesses; ++i) {
    processes.emplace_back([&, i] {
      const auto store = open_store(file);
      bool well = true;
      for (int round = 0; round < 2; ++round) {  // in the second round, all come back from being idle
        const std::string key = "key " + std::to_string(round * kProcesses + i);
        const Charge charges[] = {{key, &limit, 1}, {"all", &limit, 1}};
        const auto verdict = store->charge(charges, kNow);
        well = well && verdict && verdict->allowed;
        gates[static_cast<std::size_t>(round)].pass(kProcesses);
      }
      gates[2].pass(kProcesses);  // no process ends before all have been served
      return well;
    });
  }
  bool well = true;
  for (Process& process : processes) well = process.join() && well;
  EXPECT_TRUE(well);
  EXPECT_EQ(1'000'000 - charge(*own, "all", limit, 0).remaining, 2 * kProcesses);
  EXPECT_EQ(faults_of(own->table().region(), Rest::somebody_may_have_died), "");
}

TEST(Processes, HoldExactlyThePermitsInFlight) {
  for_each_crew([&](const Crew& crew, const std::string& file, store::MemoryStore& own) {
    const Limit limit = compile("100 concurrent", Algorithm::concurrency).value();
    for (const int offered : {30, 50, 160}) {
      const std::string key = "k" + std::to_string(offered);
      const Shared<std::atomic<int>> admitted, released;
      const auto id = [](int i) { return "hold" + std::to_string(i); };
      EXPECT_TRUE(run(crew, file, own, [&](store::MemoryStore& store, int which) {
        for (int i = which; i < offered; i += crew.size) {
          const auto decision = store.acquire({key, &limit, 2}, id(i), kNow);
          if (!decision) return false;
          *admitted += decision->allowed ? 1 : 0;
        }
        return true;
      }));
      EXPECT_EQ(*admitted, std::min(offered, 50));
      EXPECT_TRUE(run(crew, file, own, [&](store::MemoryStore& store, int which) {  // each hold is released once
        for (int i = 0; i < offered; ++i) {
          *released += *store.release(key, id((i + which * 7) % offered), kNow) ? 1 : 0;
        }
        return true;
      }));
      EXPECT_EQ(*released, *admitted);
      EXPECT_TRUE(own.acquire({key, &limit, 100}, "all", kNow)->allowed) << "nothing leaked";
    }
  });
}

// Verdicts over overlapping sets of keys of all algorithms, some of them reserved and settled, some repeated by id.
TEST(Processes, ChargeSeveralKeysAllOrNone) {
  const std::uint64_t seed = base_seed();
  std::vector<Limit> limits;
  for (const Algorithm algorithm : kChecked) limits.push_back(compile("300/minute", algorithm).value());
  const auto key = [](std::size_t k) { return "key" + std::to_string(k); };
  for_each_crew([&](const Crew& crew, const std::string& file, store::MemoryStore& own) {
    const Shared<std::atomic<std::int64_t>> taken(2 * limits.size());
    EXPECT_TRUE(run(crew, file, own, [&](store::MemoryStore& store, int which) {
      std::mt19937_64 dice(seed + static_cast<std::uint64_t>(which));
      for (int i = 0; i < 2'400 / crew.size; ++i) {
        std::vector<std::string> names;
        std::vector<Charge> charges;
        std::vector<std::size_t> places;
        for (std::size_t k = 0; k < 2 * limits.size(); ++k) {
          if (dice() % 3 == 0) places.push_back(k);
        }
        if (places.empty()) continue;
        std::shuffle(places.begin(), places.end(), dice);
        names.reserve(places.size());
        for (const std::size_t k : places) {
          names.push_back(key(k));
          charges.push_back({names.back(), &limits[k / 2], pick(dice, 1, 3)});
        }
        const std::string id = std::to_string(which) + ":" + std::to_string(i);
        const std::int64_t way = pick(dice, 0, 5);
        auto verdict = way == 0   ? store.reserve(charges, id, Micros{600'000'000}, kNow)
                       : way == 1 ? store.charge(charges, kNow, {.name = id})
                                  : store.charge(charges, kNow);
        if (!verdict) return false;
        if (!verdict->allowed) continue;
        if (way == 0) {
          for (Charge& one : charges) one.cost = pick(dice, 0, one.cost);
          if (!store.commit(charges, id, kNow)) return false;
          if (store.commit(charges, id, kNow)) return false;  // only once
        }
        if (way == 1 && !store.charge(charges, kNow, {.name = id})->allowed) return false;
        for (std::size_t k = 0; k < places.size(); ++k) taken[places[k]] += charges[k].cost;
      }
      return true;
    }));
    for (std::size_t k = 0; k < 2 * limits.size(); ++k) {
      EXPECT_EQ(charge(own, key(k), limits[k / 2], 0).remaining, 300 - taken[k]) << "key " << k;
      EXPECT_TRUE(charge(own, key(k), limits[k / 2], 300 - taken[k]).allowed);
      EXPECT_FALSE(charge(own, key(k), limits[k / 2], 1).allowed);
    }
  });
}

// Fork ----------------------------------------------------------------------------------------------------------------

// All threads of a child detect the fork at the same time.
TEST(Fork, LetsAChildWithThreadsAndItsParentChargeTheSameFile) {
  const base::TestFolder folder;
  const Limit limit = compile("100000/minute", Algorithm::token_bucket).value();
  for (int round = 0; round < 20; ++round) {
    const auto own = open_store(folder.at("state" + std::to_string(round)));
    charge(*own, "k", limit, 1);
    const Shared<std::atomic<std::int64_t>> admitted;
    const auto work = [&] {
      for (int i = 0; i < 300; ++i) {
        const Charge charges[] = {{"k", &limit, 1}, {"other", &limit, 1}};  // needs a place at the table
        const auto verdict = own->charge(charges, kNow);
        if (verdict && verdict->allowed) ++*admitted;
      }
    };
    Process child([&] {
      on_threads(4, [&](int) { work(); });
      return true;
    });
    work();
    EXPECT_TRUE(child.join());
    EXPECT_EQ(*admitted, 5 * 300);
    EXPECT_EQ(charge(*own, "k", limit, 0).remaining, 100'000 - 1 - 5 * 300);
    EXPECT_EQ(charge(*own, "other", limit, 0).remaining, 100'000 - 5 * 300);
    own->table().sweep(kNow, 1'000'000);  // the child left its records behind
    EXPECT_EQ(faults_of(own->table().region(), Rest::all_recovered), "");
  }
}

// Other threads are in the middle of requests when the process forks, so the child's copy has these requests in it.
TEST(Fork, GivesAChildACopyOfATableInMemory) {
  const Limit limit = compile("1000000/minute", Algorithm::token_bucket).value();
  const Limit log = compile("60000/minute", Algorithm::sliding_log).value();
  const auto own = open_store("");
  std::atomic<bool> over{false};
  std::atomic<std::int64_t> charged{0};
  std::vector<std::thread> busy;
  for (int i = 0; i < 2; ++i) {
    busy.emplace_back([&] {
      const Charge charges[] = {{"a", &limit, 1}, {"b", &limit, 1}, {"c", &log, 1}};
      while (!over) charged += own->charge(charges, kNow)->allowed ? 1 : 0;
    });
  }
  for (int round = 0; round < 200; ++round) {
    Process child([&] {
      const std::int64_t before = 1'000'000 - own->check({"a", &limit, 0}, kNow)->remaining;
      if (before != 1'000'000 - own->check({"b", &limit, 0}, kNow)->remaining) return false;
      if (before != std::min<std::int64_t>(60'000, before)) return false;
      if (before != 60'000 - own->check({"c", &log, 0}, kNow)->remaining) return false;
      const Charge charges[] = {{"a", &limit, 2}, {"b", &limit, 3}};
      for (int i = 0; i < 10; ++i) {
        if (!own->charge(charges, kNow)->allowed) return false;
      }
      own->table().sweep(kNow, 1'000'000);
      return own->check({"a", &limit, 0}, kNow)->remaining == 1'000'000 - before - 20 &&
             own->check({"b", &limit, 0}, kNow)->remaining == 1'000'000 - before - 30 &&
             faults_of(own->table().region(), Rest::all_recovered).empty();
    });
    EXPECT_TRUE(child.join()) << "round " << round;
    if (charged > 50'000) break;
  }
  over = true;
  for (std::thread& thread : busy) thread.join();
  EXPECT_EQ(charge(*own, "a", limit, 0).remaining, 1'000'000 - charged) << "the children had copies";
}

// A child that inherits a table and destroys it does not release the locks of its parent.
TEST(Fork, LeavesItsParentsLocksAloneWhenAChildDestroysTheTable) {
  const base::TestFolder folder;
  const std::string file = folder.at("state");
  const Limit limit = compile("1000/minute", Algorithm::token_bucket).value();
  auto own = open_store(file);
  charge(*own, "k", limit, 1);
  for (const bool is_used : {false, true}) {
    Process child([&] {
      const Charge charges[] = {{"k", &limit, 1}, {"l", &limit, 1}};
      if (is_used && !own->charge(charges, kNow)) return false;
      own.reset();
      return true;
    });
    EXPECT_TRUE(child.join());
    EXPECT_EQ(own->table().region().header().clean, 0u) << "it is in use";
    Process other([&] { return open_store(file)->check({"k", &limit, 1}, kNow)->allowed; });
    EXPECT_TRUE(other.join());
    const Charge charges[] = {{"k", &limit, 1}, {"l", &limit, 1}};
    EXPECT_TRUE(own->charge(charges, kNow));
  }
  EXPECT_EQ(charge(*own, "k", limit, 0).remaining, 1'000 - 1 - 2 - 2 - 1);
}

// A child uses the table for the first time after its parent has died. Other processes open and close the file.
TEST(Fork, LetsAChildUseTheTableAfterItsParentHasDied) {
  const base::TestFolder folder;
  const std::string file = folder.at("state");
  const Limit limit = compile("1000/minute", Algorithm::token_bucket).value();
  const Charge charges[] = {{"k", &limit, 1}, {"l", &limit, 1}};
  struct Stage {
    std::atomic<bool> is_orphaned, has_charged, is_over, is_well;
  };
  const Shared<Stage> stage;
  Process parent([&] {
    const auto own = open_store(file);
    if (!own->charge(charges, kNow)) return false;
    const auto* child = new Process([&] {
      if (!wait_until([&] { return stage->is_orphaned.load(); })) return false;
      if (!own->charge(charges, kNow)) return false;
      stage->has_charged = true;
      stage->is_well = wait_until([&] { return stage->is_over.load(); });
      return true;
    });
    return child != nullptr;  // the child goes on
  });
  EXPECT_TRUE(parent.join());
  stage->is_orphaned = true;
  EXPECT_TRUE(wait_until([&] { return stage->has_charged.load(); }));
  for (int i = 0; i < 2; ++i) {
    const auto other = open_store(file);
    EXPECT_TRUE(other->charge(charges, kNow)->allowed) << "the child does not keep others out";
    EXPECT_EQ(charge(*other, "k", limit, 0).remaining, 1'000 - 3 - i);
  }
  stage->is_over = true;
  EXPECT_TRUE(wait_until([&] { return stage->is_well.load(); }));
}

// The clock -----------------------------------------------------------------------------------------------------------

struct Admission {
  std::int64_t begin, end, cost;
};

// An admission happened at some moment from `begin` to `end`, so it counts in every interval that contains both. No
// interval shorter than the period has more than the limit.
void expect_few_in_a_period(std::vector<Admission> all, const Limit& limit) {
  std::sort(all.begin(), all.end(), [](const Admission& a, const Admission& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t sum = 0;
    for (std::size_t j = i; j < all.size() && all[j].begin < all[i].begin + limit.period_us; ++j) {
      if (all[j].end < all[i].begin + limit.period_us) sum += all[j].cost;
    }
    ASSERT_LE(sum, limit.permits) << "from " << all[i].begin;
  }
}

void expect_few_in_a_window(const std::vector<Admission>& all, const Limit& limit) {
  std::map<std::int64_t, std::int64_t> windows;
  for (const Admission& one : all) {
    const std::int64_t window = one.begin / limit.period_us;
    if (one.end / limit.period_us == window) windows[window] += one.cost;
  }
  for (const auto& [window, sum] : windows) ASSERT_LE(sum, limit.permits) << "window " << window;
}

// sum(i..j) * weight <= capacity * weight + rate * (end_j - begin_i), for all i and j.
void expect_burst_and_rate(std::vector<Admission> all, const Limit& limit) {
  std::sort(all.begin(), all.end(), [](const Admission& a, const Admission& b) { return a.begin < b.begin; });
  // For each admission, the next ones by their begin. The interval ends with the latest end among them.
  constexpr std::size_t kFar = 3'000;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::int64_t sum = 0, latest = 0;
    for (std::size_t j = i; j < std::min(all.size(), i + kFar); ++j) {
      sum += all[j].cost * limit.weight;
      latest = std::max(latest, all[j].end);
      ASSERT_LE(sum, limit.capacity * limit.weight + (latest - all[i].begin) * limit.rate)
          << "from " << all[i].begin << " to " << latest;
    }
  }
}

void expect_bound(const std::vector<Admission>& all, const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::sliding_log:
      return expect_few_in_a_period(all, limit);
    case Algorithm::fixed_window:
    case Algorithm::sliding_window:
      return expect_few_in_a_window(all, limit);
    default:
      return expect_burst_and_rate(all, limit);
  }
}

constexpr std::size_t kLogMax = 40'000;
struct Journal {
  std::atomic<std::size_t> count;
  Admission admissions[kLogMax];
};

// Four processes charge by the clock of the table, and one sweeps what recovers within milliseconds. The parent stops
// one process after another, whose reading of the clock is old when it goes on.
TEST(Processes, KeepTheIntervalBoundWhileTheClockMoves) {
  constexpr int kWorkers = 4;
  const std::uint64_t seed = base_seed();
  std::mt19937_64 dice(seed);
  for (const Algorithm algorithm : kChecked) {
    SCOPED_TRACE(weir::to_string(algorithm));
    const bool is_bucketed = algorithm::is_bucket(algorithm);
    const Limit limit = is_bucketed ? algorithm::make_bucket(algorithm, 20'000, 1'000'000, 20).value()
                                    : algorithm::make_window(algorithm, 20, 1'000).value();
    const base::TestFolder folder;
    const std::string file = folder.at("state");
    const auto own = store::MemoryStore::open({.keys = 100, .file = file}, nullptr).value();
    const Shared<std::atomic<bool>> over;
    const Shared<Journal> journals(kWorkers);
    std::vector<Process> workers;
    for (std::size_t i = 0; i < kWorkers; ++i) {
      workers.emplace_back([&, i] {
        const auto store = store::MemoryStore::open({.file = file}, nullptr).value();
        std::mt19937_64 random(seed + i);
        Journal& journal = journals[i];
        while (!*over && journal.count < kLogMax) {
          const std::int64_t cost = pick(random, 1, 3), begin = store->clock().now().count();
          if (pick(random, 0, 20) == 0) std::this_thread::yield();  // others run on, and `begin` becomes old
          const auto decision = store->check({"k", &limit, cost}, begin);
          if (!decision) return false;
          const std::int64_t end = store->clock().now().count();
          if (decision->allowed) {
            journal.admissions[journal.count] = {begin, end, cost};
            ++journal.count;
          }
        }
        return true;
      });
    }
    Process sweeper([&] {
      const auto store = store::MemoryStore::open({.file = file}, nullptr).value();
      while (!*over) store->table().sweep(store->clock().now().count(), 100);
      return true;
    });
    const auto admitted = [&] {
      std::size_t sum = 0;
      for (std::size_t i = 0; i < kWorkers; ++i) sum += journals[i].count;
      return sum;
    };
    for (int stops = 0; stops < 60; ++stops) {
      Process& one = workers[static_cast<std::size_t>(pick(dice, 0, kWorkers - 1))];
      if (!one.stop()) break;
      const std::size_t before = admitted();
      EXPECT_TRUE(wait_until([&] { return admitted() > before + 40 || admitted() > kLogMax; })) << "others go on";
      one.go_on();
      const std::size_t then = admitted();
      EXPECT_TRUE(wait_until([&] { return admitted() > then + 5; }));
    }
    *over = true;
    for (Process& worker : workers) EXPECT_TRUE(worker.join());
    EXPECT_TRUE(sweeper.join());
    std::vector<Admission> all;
    for (std::size_t i = 0; i < kWorkers; ++i) {
      all.insert(all.end(), journals[i].admissions, journals[i].admissions + journals[i].count);
    }
    EXPECT_GT(all.size(), 1'000u);
    expect_bound(all, limit);
  }
}

// All processes of a file read one clock: a later reading is never earlier.
TEST(Processes, ReadOneClock) {
  const base::TestFolder folder;
  const std::string file = folder.at("state");
  const auto own = store::MemoryStore::open({.keys = 100, .file = file}, nullptr).value();
  struct Turn {
    std::atomic<std::int64_t> turn, time;
  };
  const Shared<Turn> shared;
  const auto play = [&](store::MemoryStore& store, std::int64_t mine) {
    for (std::int64_t i = mine; i < 2'000; i += 2) {
      while (shared->turn != i) std::this_thread::yield();
      const std::int64_t now = store.clock().now().count();
      if (now < shared->time) return false;
      shared->time = now;
      shared->turn = i + 1;
    }
    return true;
  };
  Process other([&] { return play(*store::MemoryStore::open({.file = file}, nullptr).value(), 1); });
  EXPECT_TRUE(play(*own, 0));
  EXPECT_TRUE(other.join());
}

}  // namespace
}  // namespace weir::test
