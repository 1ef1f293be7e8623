// See history.h. The model of plain requests: a number for each key.

#include "history.h"

#include <algorithm>

namespace weir::test {
namespace {

using Spent = std::vector<std::int64_t>;

// False if it has no room, then nothing is spent.
bool spend(Spent& spent, const Request& request, std::span<const std::int64_t> capacity) {
  Spent next = spent;
  for (std::size_t i = 0; i < request.costs.size(); ++i) {
    const std::int64_t cost = request.costs[i];
    next[i] = std::max<std::int64_t>(0, next[i] + cost);
    if (cost > 0 && next[i] > capacity[i]) return false;
  }
  spent = next;
  return true;
}

}  // namespace

bool explain_requests(std::span<const Event<Request>> history, std::span<const std::int64_t> capacity,
                      const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& end) {
  const auto step = [&](const Spent& spent, const Event<Request>& event, std::vector<Spent>& next) {
    Spent after = spent;
    const bool allowed = spend(after, event.action, capacity);
    if (!event.has_ended() || allowed == event.action.allowed) next.push_back(after);
  };
  return explain(history, start, step, [&](const Spent& spent) { return spent == end; });
}

}  // namespace weir::test
