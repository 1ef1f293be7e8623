-- Sliding log: stores every admitted event, so nothing is estimated. The twin of sliding_log.h.
--
-- limit {permits, period, most events}. log: n, base, time(i), total(i) for i = 1..n; totals are cumulative, base is
-- the total before entry 1. An edit {dead, keep, time, total, base} drops the first `dead` entries and all after
-- entry `keep`, which becomes (time, total).
local function sliding_log_first(low, high, test) -- the smallest i in [low, high] with test(i), or high + 1
  local a, stride = low, 1 -- gallops from low, because few entries have expired since the last visit
  while a + stride - 1 <= high and not test(a + stride - 1) do
    a, stride = a + stride, stride * 2
  end
  local b = a + stride - 1
  if b > high then b = high + 1 end
  while a < b do
    local middle = floor((a + b) / 2)
    if test(middle) then b = middle else a = middle + 1 end
  end
  return a
end
local function sliding_log_settle(log, now) -- moves events after now to now, where they become one
  local n = log.n
  if n == 0 or log.time(n) <= now then return {0, n, 0, 0, 0}, false end
  local keep = sliding_log_first(1, n, function(i) return log.time(i) > now end)
  if keep > 1 and log.time(keep - 1) == now then keep = keep - 1 end
  return {0, keep, now, log.total(n), log.base}, true
end
-- The log may exceed the limit, because another version of it with more permits has admitted that many.
local function sliding_log_step(log, limit, now, cost)
  local permits, period, n, base = limit[1], limit[2], log.n, log.base
  local last, time = base, 0
  if n > 0 then last, time = log.total(n), log.time(n) end
  local dead = sliding_log_first(1, n, function(i) return log.time(i) > now - period end) - 1
  if dead > 0 then base = log.total(dead) end
  local used, keep, total = last - base, n, last
  local crowded = cost > 0 and n - dead >= limit[3] and time ~= now
  local allowed, retry = 1, 0
  if cost < 0 then
    total = last + cost
    if total <= base then
      total, keep, time = base, dead, 0
    else
      keep = sliding_log_first(dead + 1, n, function(i) return log.total(i) >= total end)
      time = log.time(keep)
    end
  elseif cost > permits then
    allowed, retry = 0, -1
  elseif crowded or used + cost > permits then
    -- the last event that must leave: to free enough permits, and an entry for one more event
    local leaver = sliding_log_first(dead + 1, n, function(k) return last - log.total(k) + cost <= permits end)
    if cost > 0 and leaver < n - limit[3] + 1 then leaver = n - limit[3] + 1 end
    allowed, retry = 0, log.time(leaver) + period - now
  elseif cost > 0 then
    total = last + cost
    if keep == dead or time ~= now then keep = keep + 1 end
    time = now
  end
  local remaining, reset = permits - (total - base), 0
  if remaining < 0 or (keep - dead >= limit[3] and time ~= now) then remaining = 0 end
  if total > base then reset = time + period - now end
  return {dead, keep, time, total, base}, allowed, remaining, retry, reset, 0, allowed == 1 and cost > 0
end
-- Refunds from the charged event, while the log stores it: its number, how much, and whether that is all of it.
local function sliding_log_refund(log, limit, now, at, cost)
  local n = log.n
  if at <= now - limit[2] then return 0, 0, false end
  local i = sliding_log_first(1, n, function(k) return log.time(k) >= at end)
  if i > n or log.time(i) ~= at then return 0, 0, false end
  local before = log.base
  if i > 1 then before = log.total(i - 1) end
  local all = log.total(i) - before
  if cost > all then cost = all end
  return i, cost, cost == all
end
return {settle = sliding_log_settle, step = sliding_log_step,
  refund = sliding_log_refund}
