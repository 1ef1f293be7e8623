-- The bucket kernel: one inequality for token bucket, leaky meter and leaky queue. The twin of bucket.h.
--
-- limit {capacity in permits, rate, weight, queue or nil}; state at, debt, in units that drain at `rate` per
-- microsecond. This is the same information as the single word at * rate + debt, which would exceed 2^53. Every twin
-- whose state consists of numbers has three of them; the third is unused here.
local function bucket_debt(at, debt, rate, now)
  debt = debt - (now - at) * rate -- inexact only beyond 2^53, where the result is still 0 or more than full
  if debt < 0 then return 0 end
  return debt
end
local function bucket_settle(at, debt, _, limit, now)
  local full = limit[1] * limit[3]
  if debt - (now - at) * limit[2] <= full then return at, debt, 0, false end
  return now, full, 0, true
end
local function bucket_convert(debt, from, to) -- in units of another limit, rounded up; it fits if admitted
  local whole = div_floor(debt, from[3])
  return whole * to[3] + mul_div_ceil(to[3], debt - whole * from[3], from[3])
end
-- The state belongs to `from` and drains at its rate; the capacity is that of `limit`.
local function bucket_step(at, debt, _, limit, now, cost, from)
  local capacity, rate, weight = limit[1], from[2], from[3]
  local is_other = rate ~= limit[2] or weight ~= limit[3]
  debt = bucket_debt(at, debt, rate, now)
  local allowed, retry, delay = 1, 0, 0
  if cost < 0 then
    if -cost > div_floor(debt, weight) then debt = 0 else debt = debt + cost * weight end
  elseif cost > capacity then
    allowed, retry = 0, -1
  else
    local room = capacity - cost
    if room > from[1] then room = from[1] end
    local over = debt - room * weight
    if over > 0 then
      allowed, retry = 0, div_ceil(over, rate)
    else
      if is_other and cost > 0 then
        debt = bucket_convert(debt, from, limit)
        rate, weight = limit[2], limit[3]
      end
      if limit[4] then delay = div_ceil(debt, rate) end
      debt = debt + cost * weight
    end
  end
  local remaining = capacity - div_ceil(debt, weight)
  if remaining < 0 then remaining = 0 end
  return now, debt, 0, allowed, remaining, retry, div_ceil(debt, rate), delay, allowed == 1 and cost > 0
end
-- Refunds all but what may have drained since the charge, because other requests could use that capacity. Refunds
-- nothing if the rate has changed, or if time ran backwards: then it is unknown how much drained.
local function bucket_refund(at, debt, _, limit, now, charged, cost, rate, weight)
  if rate ~= limit[2] or weight ~= limit[3] or charged > now then return at, debt, 0 end
  if cost > limit[1] then cost = limit[1] end
  local units = cost * weight - (now - charged) * rate -- inexact only beyond 2^53, where the result is still below 0
  local left = bucket_debt(at, debt, rate, now)
  if units <= 0 or left == 0 then return at, debt, 0 end
  if units > left then units = left end
  return now, left - units, 0
end
return {settle = bucket_settle, step = bucket_step, refund = bucket_refund}
