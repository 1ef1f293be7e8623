-- One request over several limits, decided inside Redis: all charges are taken or none is.
--
-- KEYS: one a charge. ARGV: a deadline in microseconds of this server's clock (0: none), then for each charge
--   f  permits, period, phase, cost                          fixed_window
--   f  permits, 0, calendar, cost, the starts of the last and of this window, its end, the next one's end
--   w  permits, period, 0, cost                              sliding_window
--   l  permits, period, most events, cost                    sliding_log
--   t m q  capacity, rate, weight, cost                      token_bucket, leaky_meter, leaky_bucket
--   c  permits, longest hold, 0, cost, id                    concurrency; cost -1 releases
-- Answer: {now, verdict (1 taken, 0 denied, -1 late), then for each charge allowed, remaining, retry_after (-1: never),
-- reset_after, delay}, times in microseconds. A state is a string: '1' and the kind, the limit it was written under,
-- then the state, in doubles; it expires when it would decide like an absent one. A key must name its algorithm too.
-- For Redis 6.2 or later (SET PXAT). Tested by script_test.cc and redis_script_test.cc.
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local none = {0, 0, 0}
local simple = { -- settle, convert and step of the states that are three numbers
  f = {fixed_window_settle, function(s, _, to, now) return fixed_window_convert(s, to, now) end, fixed_window_step},
  w = {sliding_window_settle, function(s, from, to, now)
    return sliding_window_convert((sliding_window_settle(s, from, now)), from, to, now)
  end, sliding_window_step},
  t = {bucket_settle, function(s, from, to, now)
    return bucket_convert((bucket_settle(s, from, now)), from, to, now)
  end, bucket_step}
}
simple.m, simple.q = simple.t, simple.t

local function expiry(now, reset) -- in milliseconds, absolute: the moment from which the state may be forgotten
  return string.format('%.0f', div_ceil(now + reset, 1000))
end

local function unknown(i) -- a key's own bytes have no place in an error
  return redis.error_reply('WEIR the value at key ' .. i .. ' of this call is no state of this version; delete it')
end

-- Each kind offers prepare(charge, now): reads the state, settles and converts it; decide(charge, now, cost): the
-- decision, and in charge.next what to write if the request is allowed; write(charge, now, next, reset).
local numbers = {}
function numbers.prepare(c, now)
  local raw = call('GET', c.key)
  c.state = none
  if not raw then return true end
  if #raw ~= 50 or raw:sub(1, 2) ~= '1' .. c.kind then return false end
  local x, y, z, a, b, d = unpack_('<dddddd', raw, 3)
  local limit = c.limit
  if x == limit[1] and y == limit[2] and z == limit[3] then
    c.state, c.moved = simple[c.kind][1]({a, b, d}, limit, now)
  else
    c.state, c.moved = simple[c.kind][2]({a, b, d}, {x, y, z}, limit, now), true
  end
  return true
end
function numbers.decide(c, now, cost)
  local decision
  c.next, decision = simple[c.kind][3](c.state, c.limit, now, cost)
  return decision
end
function numbers.write(c, now, s, reset)
  if reset == 0 then return call('DEL', c.key) end
  local limit = c.limit
  local state = '1' .. c.kind .. pack('<dddddd', limit[1], limit[2], limit[3], s[1], s[2], s[3] or 0)
  call('SET', c.key, state, 'PXAT', expiry(now, reset))
end

-- A log: '1l', 48 bytes {permits, period, most events, first, n, base}, then 16 an entry; entry i is at first + i - 1.
local log = {}
local function log_edit(s, e)
  s.base = e[5]
  if e[2] > e[1] then s.cut, s.cut_time, s.cut_total = e[2] - e[1], e[3], e[4] end
  s.first, s.n = s.first + e[1], e[2] - e[1]
  s.memo = nil
end
local function log_entry(s, i) -- the last entry may be newer than what Redis holds
  if s.memo ~= i then
    s.memo = i
    if s.cut == i then
      s.memo_time, s.memo_total = s.cut_time, s.cut_total
    else
      local at = 50 + (s.first + i - 1) * 16
      s.memo_time, s.memo_total = unpack_('<dd', call('GETRANGE', s.key, at, at + 15))
    end
  end
end
function log.prepare(c, now)
  local s = {key = c.key, n = 0, base = 0, first = 0}
  s.time = function(i) log_entry(s, i) return s.memo_time end
  s.total = function(i) log_entry(s, i) return s.memo_total end
  c.state = s
  local head = call('GETRANGE', c.key, 0, 49)
  if head == '' then return true end
  if #head ~= 50 or head:sub(1, 2) ~= '1l' then return false end
  local x, y, z
  x, y, z, s.first, s.n, s.base = unpack_('<dddddd', head, 3)
  local e, moved = sliding_log_settle(s, now)
  if moved then
    log_edit(s, e)
    c.moved = true
  end
  local limit = c.limit
  if x ~= limit[1] or y ~= limit[2] or z ~= limit[3] then
    log_edit(s, sliding_log_convert(s, {x, y, z}, limit, now))
    c.moved = true
  end
  return true
end
function log.decide(c, now, cost)
  local decision
  c.next, decision = sliding_log_step(c.state, c.limit, now, cost)
  return decision
end
local function log_head(s, limit)
  return '1l' .. pack('<dddddd', limit[1], limit[2], limit[3], s.first, s.n, s.base)
end
local function log_restart_totals(s) -- long before a total leaves the whole numbers of a double
  local live = {}
  for i = 1, s.n do
    live[i] = pack('<dd', s.time(i), s.total(i) - s.base)
  end
  s.cut, s.first, s.base, s.memo = nil, 0, 0, nil
  return table.concat(live)
end
function log.write(c, now, e, reset)
  local s, limit = c.state, c.limit
  if e ~= s then log_edit(s, e) end
  if reset == 0 then return call('DEL', c.key) end
  if s.base > 4503599627370496 then
    local live = log_restart_totals(s)
    call('SET', c.key, log_head(s, limit) .. live)
  elseif s.first > 64 and s.first > s.n then -- the dead are more than the living
    local live = call('GETRANGE', c.key, 50 + s.first * 16, 50 + (s.first + s.n) * 16 - 1)
    s.first = 0
    call('SET', c.key, log_head(s, limit) .. live)
  else
    call('SETRANGE', c.key, 0, log_head(s, limit))
  end
  if s.cut == s.n then call('SETRANGE', c.key, 50 + (s.first + s.n - 1) * 16, pack('<dd', s.cut_time, s.cut_total)) end
  call('PEXPIREAT', c.key, expiry(now, reset))
end

-- Holds: '1c' and 16 bytes {permits, longest hold}, then for each {expires, cost, length of id, id}.
local holds = {}
function holds.prepare(c, now)
  c.state = {}
  local raw = call('GET', c.key)
  if not raw then return true end
  if #raw < 18 or raw:sub(1, 2) ~= '1c' then return false end
  local permits, longest, at = unpack_('<dd', raw, 3)
  while at <= #raw do
    local expires, cost, id
    expires, cost, id, at = unpack_('<ddBc0', raw, at)
    c.state[#c.state + 1] = {expires, cost, id}
  end
  c.moved = concurrency_settle(c.state, {permits, longest}, now)
  if permits ~= c.limit[1] or longest ~= c.limit[2] then
    concurrency_convert(c.state, c.limit, now)
    c.moved = true
  end
  return true
end
function holds.decide(c, now, cost)
  c.next = {}
  for i = 1, #c.state do
    c.next[i] = c.state[i]
  end
  if cost < 0 then return concurrency_release(c.next, c.limit, now, c.id) end
  return concurrency_acquire(c.next, c.limit, now, c.id, cost)
end
function holds.write(c, now, list, reset)
  if reset == 0 then return call('DEL', c.key) end
  local out = {'1c' .. pack('<dd', c.limit[1], c.limit[2])}
  for i = 1, #list do
    local h = list[i]
    out[i + 1] = pack('<ddBc0', h[1], h[2], #h[3], h[3])
  end
  call('SET', c.key, table.concat(out), 'PXAT', expiry(now, reset))
end

local kinds = {f = numbers, w = numbers, t = numbers, m = numbers, q = numbers, l = log, c = holds}
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return {now, -1} end

local charges, seen, a, verdict = {}, {}, 2, 1
for i = 1, #KEYS do
  local key, kind = KEYS[i], ARGV[a]
  local limit = {tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), kind == 'q' or nil}
  local c = {key = key, kind = kind, limit = limit, cost = tonumber(ARGV[a + 4]), moved = false}
  a = a + 5
  if kind == 'f' and limit[2] == 0 then
    local last = tonumber(ARGV[a])
    limit[4], limit[5], limit[6] = tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
    if now < last or now >= limit[6] then
      return redis.error_reply('WEIR the clocks are more than a calendar window apart')
    end
    a = a + 4
  elseif kind == 'c' then
    c.id = ARGV[a]
    a = a + 1
  end
  if seen[key] then return redis.error_reply('WEIR key given twice') end -- it would be read once and written twice
  seen[key] = true
  charges[i] = c
end
for i = 1, #charges do
  local c = charges[i]
  if not kinds[c.kind].prepare(c, now) then return unknown(i) end
end
for i = 1, #charges do
  local c = charges[i]
  c.decision = kinds[c.kind].decide(c, now, c.cost)
  if c.decision[1] == 0 then verdict = 0 end
end
local answer = {now, verdict}
for i = 1, #charges do
  local c = charges[i]
  local kind, d = kinds[c.kind], c.decision
  if verdict == 1 and c.cost ~= 0 then
    kind.write(c, now, c.next, d[4])
  else
    if d[1] == 1 and c.cost ~= 0 then
      d = kind.decide(c, now, 0) -- what it holds without this request
      d[1], d[3] = 1, 0
    end
    if c.moved and c.cost ~= 0 then kind.write(c, now, c.state, d[4]) end -- a peek leaves it as it is
  end
  for k = 1, 5 do
    answer[i * 5 - 3 + k] = d[k]
  end
end
return answer
