-- Many requests over limits, decided inside Redis in their order: of each, all charges are taken or none is.
--
-- KEYS: each key once, the plain ones (all but logs) first. ARGV: a deadline in microseconds of this server's clock (0:
-- none); how many keys are plain; the terms of the keys; the requests; then texts. Terms are packed, little endian:
--   f  permits, period, phase                fixed_window
--   f  permits, 0, calendar, the starts of the last and of this window, its end, the next one's end
--   w  permits, period, 0                    sliding_window
--   l  permits, period, most events          sliding_log
--   t m q  capacity, rate, weight            token_bucket, leaky_meter, leaky_bucket
--   c  permits, longest hold, 0              concurrency
--   s                                        a ticket: the id of a request, or one key's part of a reservation
--   z                                        a key to be forgotten, whatever it holds
-- Requests, where {...} is repeated n times, keys are numbers of KEYS and lasts is in milliseconds:
--   a n {key cost}             a charge            r times key cost          the same request so many times
--   p key cost                 a look              o n {key cost}            as much of each as there is room for
--   i ticket lasts n {key cost}     a charge, once     u key cost at             takes back a charge of that time
--   v lasts n {key cost ticket}     a reservation      k n {key cost ticket}     its end, with the actual costs
--   h key cost text            takes permits in flight       x key text         releases them; the limit may be zeros
--   d n {key}                  forgets them: no decisions
-- Answer: {now, -1} if it is late. Else now, 0, and for each request its ruling (1 allowed or found, 0 denied or not, 2
-- repeated, 3 missing; of r how many were allowed) and a decision for each charge, of r for each that was allowed and
-- one more if not all were, of k with what was reserved: allowed, remaining, retry_after (-1: never), reset_after,
-- delay.
-- A state is a string: '1' and the kind, the limit it was written under, then the state, in doubles; it expires when it
-- would decide like an absent one. A key must name its algorithm. For Redis 6.2 or later (SET PXAT). Tested by
-- script_test.cc and redis_script_test.cc.
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return {now, -1} end

local function expiry(reset) -- in milliseconds, absolute: the moment from which the state may be forgotten
  return string.format('%.0f', div_ceil(now + reset, 1000))
end

-- Each kind offers prepare(c, raw): takes up the state, settles and converts it, or says no; step(c, cost): the
-- decision, and in c.next what keep(c) makes the state; undo(c, cost, at): takes a charge back; reset(c), write(c).
--
-- States of two or three numbers. An undone charge gives back no more than is surely left of it.
local function undo_window(s, limit, cost, at) -- a count of another window is gone by itself
  if s[1] ~= fixed_window_at(limit, at) then return s end
  return {s[1], s[2] > cost and s[2] - cost or 0}
end
local function undo_windows(s, limit, cost, at)
  local window, previous, current = sliding_window_roll(s, limit[2], now)
  local charged = div_floor(at, limit[2])
  if window == charged then
    current = current > cost and current - cost or 0
  elseif window == charged + 1 then
    previous = previous > cost and previous - cost or 0
  end
  return {window, previous, current}
end
local function undo_bucket(s, limit, cost, at) -- but for what has drained since: others may have had the use of that
  local debt = bucket_debt(s, limit[2], now)
  local rest = cost * limit[3] - (now - at) * limit[2]
  if rest > debt then rest = debt end
  if rest > 0 then debt = debt - rest end
  return {now, debt}
end
local function pack_two(l, s) return pack('<ddddd', l[1], l[2], l[3], s[1], s[2]) end
local function unpack_two(raw)
  local x, y, z, a, b = unpack_('<ddddd', raw, 3)
  return x, y, z, {a, b}
end
local function convert_bucket(s, from, to) return bucket_convert((bucket_settle(s, from, now)), from, to, now) end
local bucket = {bucket_settle, convert_bucket, bucket_step, undo_bucket, pack_two, unpack_two}
local function convert_window(s, _, to) return fixed_window_convert(s, to, now) end
local function convert_windows(s, from, to)
  return sliding_window_convert((sliding_window_settle(s, from, now)), from, to, now)
end
local function pack_windows(l, s) return pack('<ddddd', l[1], l[2], s[1], s[2], s[3]) end
local function unpack_windows(raw)
  local x, y, a, b, d = unpack_('<ddddd', raw, 3)
  return x, y, 0, {a, b, d}
end
local simple = {
  f = {fixed_window_settle, convert_window, fixed_window_step, undo_window, pack_two, unpack_two},
  w = {sliding_window_settle, convert_windows, sliding_window_step, undo_windows, pack_windows, unpack_windows},
  t = bucket, m = bucket, q = bucket
}
local none = {0, 0, 0}
local numbers = {}
function numbers.prepare(c, raw)
  local by = simple[c.mark]
  c.by, c.state = by, none
  if not raw then return true end
  if #raw ~= 42 or raw:sub(1, 2) ~= '1' .. c.mark then return false end
  local limit = c.limit
  local x, y, z, s = by[6](raw)
  if x == limit[1] and y == limit[2] and z == limit[3] then
    c.state, c.moved = by[1](s, limit, now)
  else
    c.state, c.moved = by[2](s, {x, y, z}, limit), true
  end
  return true
end
function numbers.step(c, cost)
  local decision
  c.next, decision = c.by[3](c.state, c.limit, now, cost)
  return decision
end
function numbers.keep(c) c.state = c.next end
function numbers.undo(c, cost, at) c.state = c.by[4](c.state, c.limit, cost, at) end
function numbers.write(c, reset)
  call('SET', c.key, '1' .. c.mark .. c.by[5](c.limit, c.state), 'PXAT', expiry(reset))
end

-- A log: '1l', 48 bytes {permits, period, most events, first, n, base}, then 16 an entry; entry i is at first + i - 1.
-- What is newer than what Redis holds is in s.fresh, by first + i.
local log = {}
local function log_entry(s, i)
  if s.memo == i then return end
  s.memo = i
  local e = s.fresh[s.first + i]
  if e then
    s.memo_time, s.memo_total = e[1], e[2]
  else
    local at = 50 + (s.first + i - 1) * 16
    s.memo_time, s.memo_total = unpack_('<dd', call('GETRANGE', s.key, at, at + 15))
  end
end
local function log_edit(s, e)
  s.base, s.memo = e[5], nil
  s.first, s.n = s.first + e[1], e[2] - e[1]
  local last = s.first + s.n
  for k in pairs(s.fresh) do
    if k > last then s.fresh[k] = nil end
  end
  if s.n > 0 then s.fresh[last] = {e[3], e[4]} end
end
function log.prepare(c)
  local s = {key = c.key, n = 0, base = 0, first = 0, fresh = {}}
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
function log.step(c, cost)
  local decision
  c.next, decision = sliding_log_step(c.state, c.limit, now, cost)
  return decision
end
function log.keep(c) log_edit(c.state, c.next) end
function log.undo(c, cost, at)
  local s = c.state
  local i = sliding_log_first(1, s.n, function(k) return s.time(k) >= at end)
  if i > s.n or s.time(i) ~= at then return end -- it has lapsed
  local before = s.base
  if i > 1 then before = s.total(i - 1) end
  if cost > s.total(i) - before then cost = s.total(i) - before end
  local fresh, gone = {}, s.total(i) - cost == before and 1 or 0
  for k = i + gone, s.n do
    fresh[s.first + k - gone] = {s.time(k), s.total(k) - cost}
  end
  s.n, s.memo = s.n - gone, nil
  for k = s.first + i, s.first + s.n + 1 do
    s.fresh[k] = fresh[k]
  end
end
local function log_head(s, limit)
  return '1l' .. pack('<dddddd', limit[1], limit[2], limit[3], s.first, s.n, s.base)
end
function log.write(c, reset)
  local s, limit = c.state, c.limit
  for k, e in pairs(s.fresh) do
    call('SETRANGE', c.key, 50 + (k - 1) * 16, pack('<dd', e[1], e[2]))
  end
  s.fresh, s.memo = {}, nil
  if s.base > 4503599627370496 then -- long before a total leaves the whole numbers of a double
    local live = {}
    for i = 1, s.n do
      live[i] = pack('<dd', s.time(i), s.total(i) - s.base)
    end
    s.first, s.base = 0, 0
    call('SET', c.key, log_head(s, limit) .. table.concat(live))
  elseif s.first > 64 and s.first > s.n then -- the dead are more than the living
    local live = call('GETRANGE', c.key, 50 + s.first * 16, 50 + (s.first + s.n) * 16 - 1)
    s.first = 0
    call('SET', c.key, log_head(s, limit) .. live)
  else
    call('SETRANGE', c.key, 0, log_head(s, limit))
  end
  call('PEXPIREAT', c.key, expiry(reset))
end

-- Holds: '1c' and 16 bytes {permits, longest hold}, then for each {expires, cost, length of id, id}.
local holds = {}
function holds.prepare(c, raw)
  c.state = {}
  if not raw then return true end
  if #raw < 18 or raw:sub(1, 2) ~= '1c' then return false end
  local permits, longest, at = unpack_('<dd', raw, 3)
  while at <= #raw do
    local expires, cost, id
    expires, cost, id, at = unpack_('<ddBc0', raw, at)
    c.state[#c.state + 1] = {expires, cost, id}
  end
  c.moved = concurrency_settle(c.state, {permits, longest}, now)
  if c.limit[2] == 0 then c.limit = {permits, longest} end -- a release brings none
  if permits ~= c.limit[1] or longest ~= c.limit[2] then
    concurrency_convert(c.state, c.limit, now)
    c.moved = true
  end
  return true
end
function holds.step(c) return concurrency_acquire(c.state, c.limit, now, '', 0) end
function holds.write(c, reset)
  local out = {'1c' .. pack('<dd', c.limit[1], c.limit[2])}
  for i, h in ipairs(c.state) do
    out[i + 1] = pack('<ddBc0', h[1], h[2], #h[3], h[3])
  end
  call('SET', c.key, table.concat(out), 'PXAT', expiry(reset))
end

-- A ticket: '1s' and what it stands for. c.state is that, or nil.
local ticket = {}
function ticket.prepare(c, raw)
  if not raw then return true end
  if #raw ~= 10 or raw:sub(1, 2) ~= '1s' then return false end
  c.state = unpack_('<d', raw, 3)
  return true
end

local nothing = {prepare = function() return true end}
local kinds = {
  f = numbers, w = numbers, t = numbers, m = numbers, q = numbers, l = log, c = holds, s = ticket, z = nothing
}
local function read_terms(c, terms, at)
  c.kind = kinds[c.mark]
  if c.mark == 's' or c.mark == 'z' then return at end
  local limit = {0, 0, 0, c.mark == 'q' or nil}
  limit[1], limit[2], limit[3], at = unpack_('<ddd', terms, at)
  c.limit = limit
  if c.mark ~= 'f' or limit[2] ~= 0 then return at end
  local last
  last, limit[4], limit[5], limit[6], at = unpack_('<dddd', terms, at)
  if now < last or now >= limit[6] then return nil end
  return at
end
local cells, terms, plain, at = {}, ARGV[3], tonumber(ARGV[2]), 1
local raws = plain > 0 and call('MGET', unpack(KEYS, 1, plain)) or {}
for i = 1, #KEYS do
  local c = {key = KEYS[i], mark = terms:sub(at, at)}
  at = read_terms(c, terms, at + 1)
  if not at then return redis.error_reply('WEIR the clocks are more than a calendar window apart') end
  if not c.kind.prepare(c, raws[i]) then -- a key's own bytes have no place in an error
    return redis.error_reply('WEIR the value at key ' .. i .. ' of this call is no state of this version; delete it')
  end
  cells[i] = c
end

local answer, asked = {now, 0}, ARGV[4]
local function tell(d)
  local n = #answer
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4], answer[n + 5] = d[1], d[2], d[3], d[4], d[5]
end
local function keep(c, d) -- what was just decided
  c.kind.keep(c)
  c.changed, c.reset = true, d[4]
end
local function peek(c) -- what it holds without this request
  local d = c.kind.step(c, 0)
  d[1], d[3] = 1, 0
  return d
end
local function overdraw(c, cost)
  local d = c.kind.step(c, cost)
  if d[1] == 0 then
    local left = c.kind.step(c, 0)[2]
    if left < cost then cost = left end
    d = c.kind.step(c, cost)
    d[1], d[3] = 1, 0 -- also where a lowered limit would deny even a peek
  end
  c.touched = true
  if cost ~= 0 then keep(c, d) end
  return d
end

local function read_charges(at, has_tickets)
  local list, n = {}
  n, at = unpack_('B', asked, at)
  for i = 1, n do
    local one = {}
    if has_tickets then
      one[1], one[2], one[3], at = unpack_('<HdH', asked, at)
      one[3] = cells[one[3]]
    else
      one[1], one[2], at = unpack_('<Hd', asked, at)
    end
    one[1] = cells[one[1]]
    list[i] = one
  end
  return list, at
end
local function charge_all(list) -- whether it was taken; every decision is in its charge
  local taken = true
  for i = 1, #list do
    local one = list[i]
    one[4] = one[1].kind.step(one[1], one[2])
    if one[4][1] == 0 then taken = false end
  end
  for i = 1, #list do
    local c, cost, d = list[i][1], list[i][2], list[i][4]
    if cost ~= 0 then
      c.touched = true
      if taken then
        keep(c, d)
      elseif d[1] == 1 then
        list[i][4] = peek(c)
      end
    end
  end
  return taken
end
local function tell_all(ruling, list)
  answer[#answer + 1] = ruling
  for i = 1, #list do
    tell(list[i][4])
  end
end
local function look_at_all(list)
  for i = 1, #list do
    list[i][4] = list[i][1].kind.step(list[i][1], 0)
  end
end

local ops = {}
function ops.a(at)
  local list
  list, at = read_charges(at)
  tell_all(charge_all(list) and 1 or 0, list)
  return at
end
function ops.r(at)
  local times, key, cost
  times, key, cost, at = unpack_('<HHd', asked, at)
  local c, place, taken = cells[key], #answer + 1, 0
  answer[place] = 0
  if cost ~= 0 then c.touched = true end
  while taken < times do
    local d = c.kind.step(c, cost)
    tell(d)
    if d[1] == 0 then break end
    if cost ~= 0 then keep(c, d) end
    taken = taken + 1
  end
  answer[place] = taken
  return at
end
function ops.p(at)
  local key, cost
  key, cost, at = unpack_('<Hd', asked, at)
  local c = cells[key]
  local d = c.kind.step(c, cost)
  if d[1] == 1 then -- what it holds before, and when its turn would be
    local delay = d[5]
    d = peek(c)
    d[5] = delay
  end
  tell_all(d[1], {{c, cost, nil, d}})
  return at
end
function ops.o(at)
  local list
  list, at = read_charges(at)
  for i = 1, #list do
    list[i][4] = overdraw(list[i][1], list[i][2])
  end
  tell_all(1, list)
  return at
end
function ops.u(at)
  local key, cost, charged
  key, cost, charged, at = unpack_('<Hdd', asked, at)
  local c = cells[key]
  c.kind.undo(c, cost, charged)
  c.changed, c.reset = true, nil
  answer[#answer + 1] = 1
  return at
end
function ops.i(at)
  local key, lasts, list
  key, lasts, at = unpack_('<Hd', asked, at)
  list, at = read_charges(at)
  local c = cells[key]
  if c.state then
    look_at_all(list)
    tell_all(2, list)
  elseif charge_all(list) then
    c.state, c.lasts = 0, lasts
    tell_all(1, list)
  else
    tell_all(0, list)
  end
  return at
end
function ops.v(at)
  local lasts, list
  lasts, at = unpack_('<d', asked, at)
  list, at = read_charges(at, true)
  for i = 1, #list do
    if list[i][3].state then
      look_at_all(list)
      tell_all(2, list)
      return at
    end
  end
  local taken = charge_all(list)
  for i = 1, taken and #list or 0 do
    list[i][3].state, list[i][3].lasts = list[i][2], lasts
  end
  tell_all(taken and 1 or 0, list)
  return at
end
function ops.k(at)
  local list
  list, at = read_charges(at, true)
  local ruling = 1
  for i = 1, #list do
    if not list[i][3].state then ruling = 3 end
  end
  answer[#answer + 1] = ruling
  for i = 1, #list do
    local c, cost, t = list[i][1], list[i][2], list[i][3]
    tell(ruling == 1 and overdraw(c, cost - t.state) or peek(c))
    answer[#answer + 1] = t.state or 0
    if ruling == 1 then t.state, t.gone = nil, true end
  end
  return at
end
function ops.h(at)
  local key, cost, text
  key, cost, text, at = unpack_('<HdB', asked, at)
  local c = cells[key]
  local d = concurrency_acquire(c.state, c.limit, now, ARGV[4 + text] or '', cost)
  if cost ~= 0 then c.touched = true end
  if d[1] == 1 and cost ~= 0 then c.changed, c.reset = true, d[4] end
  tell_all(d[1], {{c, cost, nil, d}})
  return at
end
function ops.x(at)
  local key, text
  key, text, at = unpack_('<HB', asked, at)
  local c = cells[key]
  local d = concurrency_release(c.state, c.limit, now, ARGV[4 + text])
  c.touched = true
  if d[1] == 1 then c.changed, c.reset = true, d[4] end
  tell_all(d[1], {{c, 0, nil, d}})
  return at
end
function ops.d(at)
  local n, key
  n, at = unpack_('B', asked, at)
  local found = 0
  for _ = 1, n do
    key, at = unpack_('<H', asked, at)
    found = found + call('DEL', cells[key].key)
  end
  answer[#answer + 1] = found > 0 and 1 or 0
  return at
end

at = 1
while at <= #asked do
  at = ops[asked:sub(at, at)](at + 1)
end
for i = 1, #cells do
  local c = cells[i]
  if c.mark == 's' then
    if c.gone then call('DEL', c.key) end
    if c.lasts and c.state then
      call('SET', c.key, '1s' .. pack('<d', c.state), 'PX', string.format('%.0f', c.lasts))
    end
  elseif c.mark ~= 'z' and (c.changed or (c.moved and c.touched)) then -- a peek leaves it as it is
    local reset = c.changed and c.reset or c.kind.step(c, 0)[4]
    if reset == 0 then call('DEL', c.key) else c.kind.write(c, reset) end
  end
end
return answer
