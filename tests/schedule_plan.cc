// See schedule_plan.h. Plans are small on purpose: two or three participants with two or three operations each.

#include "schedule_plan.h"

#include "seed.h"

namespace weir::test {
namespace {

std::uint8_t bit(std::size_t i) { return static_cast<std::uint8_t>(1u << i); }

constexpr Algorithm kInSlot[] = {Algorithm::token_bucket, Algorithm::fixed_window, Algorithm::sliding_window};

void place_keys(Setting& setting, std::mt19937_64& random) {
  const std::size_t how = below(random, 3);
  const auto line = static_cast<std::uint32_t>(one_in(random, 2) ? 5 : table::kLines - 1);
  for (std::size_t k = 0; k < kKeys; ++k) {
    setting.lines[k] = how == 0 ? static_cast<std::uint32_t>(10 * k + 3) : line;
  }
  if (how == 2) setting.lines[2] = (line + 1) % table::kLines;
}

void set_key(Setting& setting, std::size_t k, Algorithm algorithm, std::mt19937_64& random) {
  setting.algorithms[k] = algorithm;
  setting.rules.capacity[k] = static_cast<std::int8_t>(1 + below(random, 4));
  if (algorithm == Algorithm::concurrency) {
    setting.rules.holds |= bit(k);
    setting.rules.capacity[k] = static_cast<std::int8_t>(1 + below(random, 2));
  }
  if (algorithm != Algorithm::sliding_log) return;
  setting.rules.logs |= bit(k);
  if (!one_in(random, 3)) setting.rules.capacity[k] = one_in(random, 2) ? 5 : 10;
}

Action charge_of(std::size_t key, int cost) {
  Action action;
  action.asked = bit(key);
  action.costs[key] = static_cast<std::int8_t>(cost);
  return action;
}

// What the tester does before: some keys are in the table, some are there with nothing used except old events of a log,
// and some are not there.
void prepare_keys(Plan& plan, std::mt19937_64& random) {
  const Rules& rules = plan.setting.rules;
  for (std::size_t k = 0; k < kKeys; ++k) {
    if ((rules.holds >> k & 1) != 0) continue;
    std::size_t charges = below(random, 3);
    if ((rules.logs >> k & 1) != 0 && !one_in(random, 3)) charges = static_cast<std::size_t>(rules.capacity[k]) - 1;
    for (std::size_t i = 0; i < charges; ++i) plan.before.push_back(charge_of(k, 1));
    if (one_in(random, 4)) plan.before.push_back(charge_of(k, -1));
  }
}

Action random_charge(const Rules& rules, std::mt19937_64& random) {
  Action action;
  action.id = static_cast<std::uint8_t>(below(random, kIds));
  const std::size_t many = 1 + below(random, 3);
  while (action.asked == 0 || (many > 1 && std::popcount(unsigned{action.asked}) < 2)) {
    for (std::size_t k = 0; k < kKeys; ++k) {
      if ((rules.holds >> k & 1) != 0 || !one_in(random, many == 3 ? 1 : 3)) continue;
      action.asked |= bit(k);
      const std::size_t how = below(random, 8);
      action.costs[k] = static_cast<std::int8_t>(how == 0 ? 2 : how < 6 ? 1 : how == 6 ? -1 : 0);
    }
    if (std::popcount(unsigned{static_cast<std::uint8_t>(~rules.holds & 7)}) < 2) break;
  }
  return action;
}

Action one_key(Doing doing, std::size_t key, std::mt19937_64& random) {
  Action action{.doing = doing, .key = static_cast<std::uint8_t>(key)};
  action.asked = bit(key);
  action.id = static_cast<std::uint8_t>(below(random, kIds));
  return action;
}

Action random_hold(const Rules& rules, std::mt19937_64& random) {
  std::size_t key = below(random, kKeys);
  while ((rules.holds >> key & 1) == 0) key = (key + 1) % kKeys;
  return one_key(one_in(random, 2) ? Doing::release : Doing::acquire, key, random);
}

Action random_ticketed(const Rules& rules, std::mt19937_64& random) {
  Action action = random_charge(rules, random);
  static constexpr Doing kDoings[] = {Doing::identified, Doing::identified, Doing::reserve, Doing::commit};
  action.doing = kDoings[below(random, 4)];
  action.id = static_cast<std::uint8_t>(below(random, kIds));
  for (std::int8_t& cost : action.costs) cost = static_cast<std::int8_t>(std::abs(int{cost}));
  return action;
}

Action random_action(Scenario scenario, const Rules& rules, std::mt19937_64& random) {
  if (scenario == Scenario::holds && one_in(random, 2)) return random_hold(rules, random);
  if (scenario == Scenario::tickets && !one_in(random, 4)) return random_ticketed(rules, random);
  if (scenario == Scenario::full && one_in(random, 4)) {
    return {.doing = Doing::evacuate, .key = static_cast<std::uint8_t>(below(random, kStrangers))};
  }
  if (one_in(random, 8)) return one_key(Doing::forget, below(random, kKeys), random);
  Action action = random_charge(rules, random);
  return action;
}

void choose_keys(Plan& plan, Scenario scenario, std::mt19937_64& random) {
  Setting& setting = plan.setting;
  place_keys(setting, random);
  const Algorithm one_for_all = kInSlot[below(random, 3)];
  const bool same_limit = one_in(random, 2);
  for (std::size_t k = 0; k < kKeys; ++k) {
    Algorithm algorithm = one_in(random, 4) ? Algorithm::sliding_log : kInSlot[below(random, 3)];
    if (scenario == Scenario::full) algorithm = one_for_all;
    if (scenario == Scenario::crowded) algorithm = kInSlot[below(random, 3)];
    if (scenario == Scenario::holds) algorithm = k == 0 ? Algorithm::sliding_log : Algorithm::concurrency;
    if (scenario == Scenario::compact) algorithm = Algorithm::sliding_log;
    set_key(setting, k, algorithm, random);
    if (scenario == Scenario::full && same_limit) setting.rules.capacity[k] = setting.rules.capacity[0];
  }
}

}  // namespace

const char* name_of(Scenario scenario) {
  static constexpr const char* kNames[kScenarios] = {"counters", "jump",    "holds",      "tickets", "swept",
                                                     "full",     "crowded", "new_limits", "compact"};
  return kNames[static_cast<std::size_t>(scenario)];
}

Plan random_plan(Scenario scenario, std::mt19937_64& random) {
  Plan plan;
  Setting& setting = plan.setting;
  choose_keys(plan, scenario, random);
  plan.solo_tries = static_cast<unsigned>(below(random, 3));
  setting.neighbours = one_in(random, 2) ? static_cast<unsigned>(below(random, 7)) : 0;
  setting.are_limits_new = scenario == Scenario::new_limits;
  // A settlement takes from the event that the reservation made. A plain refund or a reset may have taken that event,
  // and then nothing comes back, which the model does not know. In one microsecond a log has one event.
  setting.is_time_still = scenario == Scenario::tickets;
  if (scenario == Scenario::full || scenario == Scenario::crowded) {
    setting.beginning = scenario == Scenario::full ? Beginning::full : Beginning::crowded;
    setting.neighbours = 0;
    setting.rules.is_page_full = scenario == Scenario::full;
    if (scenario == Scenario::full && one_in(random, 2)) {
      setting.beginning = Beginning::kin;
      setting.rules.are_strangers_kin = true;
      setting.algorithms.fill(Algorithm::token_bucket);
      setting.rules.capacity.fill(World::kCapacityMax);
    }
    if (scenario == Scenario::full && one_in(random, 2)) plan.before.push_back({.doing = Doing::evacuate});
  }
  if (scenario == Scenario::holds && one_in(random, 2)) {
    setting.arena_lines = 4 + below(random, 8);
    setting.rules.is_arena_tight = true;
  }
  if (scenario == Scenario::compact) {
    setting.arena_lines = below(random, 10);  // none is denied for that
    setting.freed_max = static_cast<unsigned>(below(random, 3));
  }
  plan.jumps = scenario == Scenario::jump ? 1 + static_cast<unsigned>(below(random, 2)) : 0;
  if (scenario == Scenario::compact && one_in(random, 3)) plan.jumps = 1;
  plan.begins_late = scenario == Scenario::swept;
  setting.rules.last_epoch = static_cast<std::int8_t>(plan.jumps + (plan.begins_late ? 1 : 0));
  if (scenario != Scenario::crowded && scenario != Scenario::new_limits) prepare_keys(plan, random);
  const std::size_t fibers = 2 + below(random, 2), operations = 2 + below(random, 2);
  for (std::size_t i = 0; i < fibers; ++i) {
    plan.fibers.emplace_back();
    for (std::size_t j = 0; j < operations; ++j) {
      plan.fibers.back().push_back(random_action(scenario, setting.rules, random));
    }
  }
  if (scenario == Scenario::swept) plan.fibers.back() = {{.doing = Doing::sweep}};
  return plan;
}

Play::Play(World& world, Schedule& schedule, const Plan& plan) : world_(world), schedule_(schedule), plan_(plan) {
  schedule.reset(plan.solo_tries);
  world.begin(plan.setting);
  table::Actor before(world.region(), World::kBefore);
  for (Action action : plan.before) world.perform(before, action);
  if (plan.begins_late) world.jump();
  start_ = world.look();
  for (std::size_t k = 0; k < kKeys; ++k) start_.epoch[k] = start_.used[k] > 0 ? world.epoch() : std::int8_t{0};
  for (std::size_t i = 0; i < plan.fibers.size(); ++i) {
    events_.emplace_back();
    for (const Action& action : plan.fibers[i]) events_.back().push_back({action});
    next_.push_back(0);
    is_dead_.push_back(false);
    schedule.start(i, [this, i] { play(i); });
  }
}

void Play::play(std::size_t fiber) {
  table::Actor actor(world_.region(), World::kFirst + fiber);
  while (next_[fiber] < events_[fiber].size()) {
    Event<Action>& event = events_[fiber][next_[fiber]++];
    event.begin = schedule_.moment();
    world_.perform(actor, event.action);
    event.end = schedule_.moment();
  }
}

void Play::kill(std::size_t fiber, bool is_replaced) {
  schedule_.kill(fiber);
  is_dead_[fiber] = !is_replaced;
  if (!is_replaced) return;
  schedule_.start(fiber, [this, fiber] {
    world_.recover(World::kFirst + fiber);
    play(fiber);
  });
}

std::vector<Event<Action>> Play::history() const {
  std::vector<Event<Action>> all;
  for (const auto& events : events_) {
    for (const Event<Action>& event : events) {
      if (event.begin != 0) all.push_back(event);
    }
  }
  return all;
}

std::string Play::judge() {
  for (std::size_t i = 0; i < fibers(); ++i) {
    if (is_dead_[i]) world_.recover(World::kFirst + i);
  }
  if (schedule_.has_stuck()) return "an operation never ends";
  if (std::string harm = world_.find_harm(); !harm.empty()) return harm;
  const Rules& rules = plan_.setting.rules;
  const State end = world_.look();
  const auto all = history();
  const auto by_model = [&](const State& state, const Event<Action>& event, std::vector<State>& next) {
    step(rules, state, event, next);
  };
  const auto is_end = [&](const State& state) { return at_last(rules, state) == end; };
  if (explain(std::span<const Event<Action>>(all), start_, by_model, is_end)) return "";
  std::string text = "no order explains this:\n  start " + describe(start_) + "\n";
  for (const Event<Action>& event : all) text += "  " + describe(event) + "\n";
  text += "  end " + describe(end) + "\n  capacity";
  for (const std::int8_t capacity : rules.capacity) text += " " + std::to_string(capacity);
  return text;
}

}  // namespace weir::test
