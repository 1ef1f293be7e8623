-- Fixed window: a counter that restarts at zero at every boundary. The twin of fixed_window.h.
--
-- limit {permits, period, phase}, or for a calendar {permits, 0, calendar, start, end, next end, last start}. The
-- latter describes the caller's current window; by Redis's clock it may be the window before or after. state end,
-- count, nothing.
local function fixed_window_at(limit, now) -- the end of the window of now, and of the next
  local period = limit[2]
  if period > 0 then
    local lead = period - limit[3] -- of the first window, which begins before the epoch
    local start = div_floor(now + lead, period) * period - lead
    return start + period, start + 2 * period
  end
  if now < limit[4] then return limit[4], limit[5] end
  if now < limit[5] then return limit[5], limit[6] end
  return limit[6], 9007199254740992 -- the caller did not send later windows
end
local function fixed_window_settle(ends, count, _, limit, now)
  if ends <= now then return ends, count, 0, false end
  local own_ends, next_ends = fixed_window_at(limit, now)
  if ends <= next_ends then return ends, count, 0, false end -- this window or the next: used until it ends
  return own_ends, count, 0, true
end
-- The count may exceed the limit, because another version of it with more permits has admitted that many.
local function fixed_window_step(ends, count, _, limit, now, cost)
  local permits = limit[1]
  if now >= ends then
    ends = fixed_window_at(limit, now)
    count = 0
  end
  local left = ends - now
  local allowed, retry = 1, 0
  if cost < 0 then
    count = count + cost
    if count < 0 then count = 0 end
  elseif cost > permits then
    allowed, retry = 0, -1
  elseif count + cost > permits then
    allowed, retry = 0, left
  else
    count = count + cost
  end
  local remaining, reset = permits - count, 0
  if remaining < 0 then remaining = 0 end
  if count > 0 then reset = left end
  return ends, count, 0, allowed, remaining, retry, reset, 0, allowed == 1 and cost > 0
end
-- Refunds only to the window that was charged, and only while it lasts.
local function fixed_window_refund(ends, count, _, limit, now, at, cost)
  if limit[2] == 0 and (at < limit[7] or at >= limit[6]) then return ends, count, 0 end -- in no window that was sent
  if ends <= now or fixed_window_at(limit, at) ~= ends then return ends, count, 0 end
  return ends, count > cost and count - cost or 0, 0
end
return {settle = fixed_window_settle, step = fixed_window_step,
  refund = fixed_window_refund}
