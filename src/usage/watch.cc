// Watches keys. See watch.h. Any thread.
//
// It adds up what the threads and minutes have counted for a key. If one of them has no entry, it may have evicted
// it. Then the most that the entry can have had is added to the count and to the error. So a count is never too low,
// and a count less its error is never too high.
#include "usage/watch.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace weir::usage {
Watch::Watch(Micros now)
    : secret_(random_secret()), began_(now), stripes_(std::make_unique<std::array<Stripe, base::kStripes>>()) {}
Watch::~Watch() = default;

Watch::Pair& Watch::Generation::pair_of(std::uint32_t rule) {
  if (places.size() <= rule) places.resize(rule + 1, UINT8_MAX);
  std::uint8_t& place = places[rule];
  if (place == UINT8_MAX) {
    const std::size_t next = std::max<std::size_t>(used, 1);  // the first is the shared pair
    const std::size_t own = next <= kOwnMax ? next : 0;
    while (pairs.size() <= own) pairs.push_back(std::make_unique<Pair>());  // may throw, so it comes first
    place = static_cast<std::uint8_t>(own);
    used = std::max(used, own + 1);
  }
  return *pairs[place];
}

void Watch::Generation::begin(std::int64_t at) {
  number = at;
  used = 0;
  std::ranges::fill(places, UINT8_MAX);
  for (const auto& pair : pairs) {
    pair->hits.clear();
    pair->denied.clear();
  }
}

Sampler Watch::load(const Stripe& stripe) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  return {stripe.second.load(kRelaxed), stripe.seen.load(kRelaxed), stripe.skip.load(kRelaxed),
          stripe.noise.load(kRelaxed)};
}

// Two threads on one stripe may overwrite each other's counts. Then slightly more or fewer events are looked at.
void Watch::store(Stripe& stripe, const Sampler& sampler) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  stripe.second.store(sampler.second, kRelaxed);
  stripe.seen.store(sampler.seen, kRelaxed);
  stripe.skip.store(sampler.skip, kRelaxed);
  stripe.noise.store(sampler.noise, kRelaxed);
}

Watch::Generation& Watch::generation(Stripe& stripe, Micros now) {
  const std::int64_t number = number_of(now);
  Generation& at = stripe.generations[static_cast<std::size_t>(number & 1)];
  if (at.number != number) at.begin(number);
  return at;
}

std::uint32_t Watch::weigh(Micros now) noexcept {
  Stripe& stripe = (*stripes_)[base::stripe_of_this_thread()];
  Sampler sampler = load(stripe);
  sampler.begin(now);
  const std::uint32_t weight = sampler.weigh();
  store(stripe, sampler);
  return weight;
}

void Watch::put(Generation& generation, const Met& met, std::uint32_t weight) const {
  Pair& pair = generation.pair_of(met.rule);
  const std::uint64_t mark = mark_of(met.key, secret_);
  if (met.is_hit) pair.hits.add(met.rule, met.key, mark, weight);
  if (met.is_denied) pair.denied.add(met.rule, met.key, mark, weight);
}

void Watch::add(std::span<const Met> met, std::uint32_t weight, Micros now) noexcept {
  Stripe& stripe = (*stripes_)[base::stripe_of_this_thread()];
  const base::MutexLock lock(stripe.writing);
  try {
    Generation& at = generation(stripe, now);
    for (const Met& one : met) put(at, one, weight);
  } catch (const std::exception&) {  // out of memory: the event is not watched
  }
}

// A caller's key as it was sent; other keys without the byte that marks their space.
std::string_view Watch::key_to_show(const Charge& charge) {
  return charge.key.substr(charge.space == KeySpace::callers || charge.key.empty() ? 0 : 1);
}

void Watch::add_many(std::uint32_t rule, std::span<const Charge> charges, std::span<const Result<Decision>> answers,
                     Micros now) noexcept {
  Stripe& stripe = (*stripes_)[base::stripe_of_this_thread()];
  Sampler sampler = load(stripe);
  sampler.begin(now);
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if (charges[i].cost <= 0 || !answers[i]) continue;
    const std::uint32_t weight = sampler.weigh();
    if (weight == 0) continue;
    try {
      const base::MutexLock lock(stripe.writing);
      put(generation(stripe, now), {rule, key_to_show(charges[i]), !answers[i]->allowed}, weight);
    } catch (const std::exception&) {  // out of memory: the event is not watched
    }
  }
  store(stripe, sampler);
}

std::vector<Watch::Found> Watch::find(TopBy by, Micros now) const {
  struct Sum {
    std::uint64_t count = 0, error = 0;
    std::uint64_t floors = 0;  // of sketches that have the key
    bool is_cut = false;
  };
  using Key = std::tuple<std::uint32_t, std::uint64_t, std::string>;  // rule, mark, and the stored part of the key
  std::map<Key, Sum> sums;
  std::map<std::uint32_t, std::uint64_t> own_floors;  // beyond the floors of the shared sketches
  std::uint64_t shared_floors = 0;
  for (Stripe& stripe : *stripes_) {
    const base::MutexLock lock(stripe.writing);
    for (const Generation& at : stripe.generations) {
      if (at.number < number_of(now) - 1 || at.number > number_of(now)) continue;
      const auto sketch = [&](std::size_t i) -> const Sketch& {
        return by == TopBy::hits ? at.pairs[i]->hits : at.pairs[i]->denied;
      };
      const std::uint64_t shared = at.pairs.empty() ? 0 : sketch(0).floor();
      shared_floors += shared;
      for (std::uint32_t rule = 0; rule < at.places.size(); ++rule) {
        const std::uint8_t place = at.places[rule];
        if (place == 0 || place == UINT8_MAX) continue;
        own_floors[rule] += sketch(place).floor() - shared;  // modulo 2^64; the sum is right
      }
      for (std::size_t i = 0; i < at.pairs.size(); ++i) {
        const Sketch& from = sketch(i);
        const std::uint64_t floor = from.size() == 0 ? 0 : from.floor();
        for (std::size_t k = 0; k < from.size(); ++k) {
          const Sketch::Entry entry = from[k];
          Sum& sum = sums[{entry.group, entry.mark, std::string(entry.key)}];
          sum.count += entry.count;
          sum.error += entry.error;
          sum.floors += floor;
          sum.is_cut = entry.is_cut;
        }
      }
    }
  }
  std::vector<Found> out;
  out.reserve(sums.size());
  for (const auto& [key, sum] : sums) {
    const auto& [rule, mark, text] = key;
    const auto own = own_floors.find(rule);
    const std::uint64_t unknown = shared_floors + (own == own_floors.end() ? 0 : own->second) - sum.floors;
    out.push_back({rule, text, mark, sum.is_cut, sum.count + unknown, sum.error + unknown});
  }
  return out;
}

Micros Watch::covers(Micros now) const {
  const Micros from{(number_of(now) - 1) * kGeneration.count()};
  return now - std::max(from, std::min(began_, now));
}

std::size_t Watch::bytes() const {
  std::size_t sum = sizeof *stripes_;
  for (Stripe& stripe : *stripes_) {
    const base::MutexLock lock(stripe.writing);
    for (const Generation& at : stripe.generations) sum += at.places.size() + at.pairs.size() * sizeof(Pair);
  }
  return sum;
}

}  // namespace weir::usage
