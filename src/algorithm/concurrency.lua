-- Concurrency: permits in flight, each under an id until it is released or expires. The twin of concurrency.h.
--
-- limit {permits, the longest hold}; holds {{expires, cost, id}, ...}, sorted: the first expires first
local function concurrency_settle(holds, limit, now) -- cuts holds that expire later than the limit allows from now
  local latest, moved = now + limit[2], false
  for i = #holds, 1, -1 do
    if holds[i][1] <= latest then break end
    holds[i][1], moved = latest, true
  end
  return moved
end
local function concurrency_expire(holds, now)
  local dead = 0
  while holds[dead + 1] and holds[dead + 1][1] <= now do
    dead = dead + 1
  end
  if dead > 0 then
    for i = 1, #holds do
      holds[i] = holds[i + dead]
    end
  end
end
local function concurrency_suits(holds, limit, now) -- whether no hold expires later than the limit allows
  return #holds == 0 or holds[#holds][1] <= now + limit[2]
end
local function concurrency_find(holds, id, now) -- the index of the hold, or one beyond the last
  local i = 1
  while holds[i] and (holds[i][1] <= now or holds[i][3] ~= id) do
    i = i + 1
  end
  return i
end
local function concurrency_report(holds, limit, now, allowed, retry)
  local used, reset = 0, 0
  for i = 1, #holds do
    if holds[i][1] > now then used = used + holds[i][2] end
  end
  local remaining = limit[1] - used
  if remaining < 0 then remaining = 0 end
  if used > 0 then reset = holds[#holds][1] - now end
  return allowed, remaining, retry, reset, 0
end
local function concurrency_acquire(holds, limit, now, id, cost) -- cost 0 peeks; changes the holds only if it allows
  local permits, n = limit[1], #holds
  local own, used = n + 1, 0
  if cost ~= 0 then own = concurrency_find(holds, id, now) end
  for i = 1, n do
    if i ~= own and holds[i][1] > now then used = used + holds[i][2] end
  end
  local allowed, retry = 1, 0
  if cost > permits then
    allowed, retry = 0, -1
  elseif used + cost > permits then
    local i = 0
    while used + cost > permits do
      i = i + 1
      if i ~= own and holds[i][1] > now then used = used - holds[i][2] end
    end
    allowed, retry = 0, holds[i][1] - now
  elseif cost > 0 then
    if own <= n then table.remove(holds, own) end
    concurrency_expire(holds, now)
    local expires, place = now + limit[2], #holds + 1
    while place > 1 and holds[place - 1][1] > expires do
      place = place - 1
    end
    table.insert(holds, place, {expires, cost, id})
  end
  return concurrency_report(holds, limit, now, allowed, retry)
end
local function concurrency_release(holds, limit, now, id) -- allowed says whether the id had a permit
  local own = concurrency_find(holds, id, now)
  local held = 0
  if own <= #holds then
    held = 1
    table.remove(holds, own)
    concurrency_expire(holds, now)
  end
  return concurrency_report(holds, limit, now, held, 0)
end
return {settle = concurrency_settle, suits = concurrency_suits, acquire = concurrency_acquire,
  release = concurrency_release}
