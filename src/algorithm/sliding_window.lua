-- Sliding window: the current window's count plus a fading part of the previous one's. The twin of sliding_window.h.
--
-- limit {permits, period}; state window, previous, current
local function sliding_window_roll(window, previous, current, period, now) -- to the window of now; a state ahead stays
  local this = div_floor(now, period)
  if window >= this then return window, previous, current end
  if window == this - 1 then return this, current, 0 end
  return this, 0, 0
end
-- The shortest wait until floor(previous * (period - elapsed) / period) + current <= room, without traffic.
local function sliding_window_wait(previous, current, elapsed, period, room)
  if current > room then return period - elapsed + period - mul_div_ceil(period, room + 1, current) + 1 end
  if previous <= room - current then return 0 end
  local wait = period - mul_div_ceil(period, room - current + 1, previous) + 1 - elapsed
  if wait < 0 then return 0 end
  return wait
end
local function sliding_window_settle(window, previous, current, limit, now)
  local this = div_floor(now, limit[2])
  if window <= this + 1 then return window, previous, current, false end
  local spent = previous + current
  if spent > limit[1] then spent = limit[1] end
  return this, 0, spent, true
end
-- Counters may exceed the limit, because another version of it with more permits has admitted that many. They never
-- exceed the limit that the state belongs to.
local function sliding_window_step(window, previous, current, limit, now, cost)
  local permits, period = limit[1], limit[2]
  window, previous, current = sliding_window_roll(window, previous, current, period, now)
  local elapsed, ahead = now - window * period, 0
  if elapsed < 0 then elapsed, ahead = 0, -elapsed end -- a window that has not begun
  local allowed, retry = 1, 0
  if cost < 0 then
    current = current + cost
    if current < 0 then
      previous, current = previous + current, 0
      if previous < 0 then previous = 0 end
    end
  elseif cost > permits then
    allowed, retry = 0, -1
  else
    local wait = sliding_window_wait(previous, current, elapsed, period, permits - cost)
    if wait > 0 then allowed, retry = 0, wait + ahead else current = current + cost end
  end
  local remaining = permits - mul_div_floor(previous, period - elapsed, period) - current
  if remaining < 0 then remaining = 0 end
  local reset = sliding_window_wait(previous, current, elapsed, period, 0)
  if reset > 0 then reset = reset + ahead end
  return window, previous, current, allowed, remaining, retry, reset, 0,
    allowed == 1 and cost > 0 and previous <= permits
end
-- Refunds to the counter of the charged window. Older windows no longer have a counter.
local function sliding_window_refund(window, previous, current, limit, now, at, cost)
  local own, before, this = sliding_window_roll(window, previous, current, limit[2], now)
  local charged = div_floor(at, limit[2])
  if own == charged and this > 0 then return own, before, this > cost and this - cost or 0 end
  if own == charged + 1 and before > 0 then return own, before > cost and before - cost or 0, this end
  return window, previous, current
end
return {settle = sliding_window_settle, step = sliding_window_step,
  refund = sliding_window_refund}
