// Concurrency: permits in flight, each under an id until it is released or expires. Its twin in Lua is
// concurrency.lua.
//
// A *hold* is the permits of one id. Holds are sorted by expiry. No version of the limit shortens or drops a hold that
// another version granted. The state belongs to a limit whose period reaches at least as far as its last hold. So a
// hold that expires later than one such period from now comes from a clock that ran ahead. Pure; any thread. Tested by
// differential_test.cc and tests/scenarios/concurrency.txt.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "algorithm/step.h"

namespace weir::algorithm {

struct Hold {
  std::int64_t expires_us;  // in flight while now is before this
  std::int64_t cost;
  std::string id;
};

using Holds = std::vector<Hold>;  // sorted: the first expires first

// Cuts holds that expire later than the limit's period from now. Returns true if it cut any.
inline bool concurrency_settle(Holds& holds, const Limit& limit, std::int64_t now) {
  const std::int64_t latest = now + limit.period_us;
  bool moved = false;
  for (auto hold = holds.rbegin(); hold != holds.rend() && hold->expires_us > latest; ++hold) {
    hold->expires_us = latest;
    moved = true;
  }
  return moved;
}

inline void concurrency_expire(Holds& holds, std::int64_t now) {
  std::size_t dead = 0;
  while (dead < holds.size() && holds[dead].expires_us <= now) ++dead;
  holds.erase(holds.begin(), holds.begin() + static_cast<std::ptrdiff_t>(dead));
}

// Whether the state can belong to this limit: no hold expires later than the limit allows.
inline bool concurrency_suits(const Holds& holds, const Limit& limit, std::int64_t now) {
  return holds.empty() || holds.back().expires_us <= now + limit.period_us;
}

// The index of the hold, counted from 0; the size if there is none.
inline std::size_t concurrency_find(const Holds& holds, std::string_view id, std::int64_t now) {
  std::size_t i = 0;
  while (i < holds.size() && (holds[i].expires_us <= now || holds[i].id != id)) ++i;
  return i;
}

inline void concurrency_report(const Holds& holds, const Limit& limit, std::int64_t now, Decision& d) {
  std::int64_t used = 0;
  for (const Hold& hold : holds) used += hold.expires_us > now ? hold.cost : 0;
  d.remaining = std::max<std::int64_t>(0, limit.permits - used);
  d.reset_after = Micros{used > 0 ? holds.back().expires_us - now : 0};
}

// Cost 0 peeks. Changes the holds only if it allows.
inline Decision concurrency_acquire(Holds& holds, const Limit& limit, std::int64_t now, std::string_view id,
                                    std::int64_t cost) {
  const std::size_t own = cost == 0 ? holds.size() : concurrency_find(holds, id, now);
  std::int64_t used = 0;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (i != own && holds[i].expires_us > now) used += holds[i].cost;
  }
  Decision d = granted(limit.capacity);
  if (cost > limit.permits) {
    refuse(d, kNever);
  } else if (used + cost > limit.permits) {
    std::size_t i = 0;
    for (; used + cost > limit.permits; ++i) {
      if (i != own && holds[i].expires_us > now) used -= holds[i].cost;
    }
    refuse(d, Micros{holds[i - 1].expires_us - now});
  } else if (cost > 0) {
    if (own < holds.size()) holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(own));
    concurrency_expire(holds, now);
    const std::int64_t expires = now + limit.period_us;
    std::size_t place = holds.size();
    while (place > 0 && holds[place - 1].expires_us > expires) --place;
    holds.insert(holds.begin() + static_cast<std::ptrdiff_t>(place), Hold{expires, cost, std::string(id)});
  }
  concurrency_report(holds, limit, now, d);
  return d;
}

// `allowed` says whether the id had a permit.
inline Decision concurrency_release(Holds& holds, const Limit& limit, std::int64_t now, std::string_view id) {
  const std::size_t own = concurrency_find(holds, id, now);
  Decision d = granted(limit.capacity);
  d.allowed = own < holds.size();
  if (d.allowed) {
    holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(own));
    concurrency_expire(holds, now);
  }
  concurrency_report(holds, limit, now, d);
  return d;
}

}  // namespace weir::algorithm
