-- Many requests over limits, decided inside Redis in their order: of each, all charges are taken or none is.
--
-- KEYS: each key once, the plain ones (all but logs) first. ARGV: a deadline in microseconds of this server's clock (0:
-- none); how many keys are plain; terms, each once; for every key a byte, the number of its terms; the requests; then
-- texts. Terms are packed, little endian:
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
-- repeated, 3 missing) and a decision for each charge, of k with what was reserved: allowed, remaining, retry_after
-- (-1: never), reset_after, delay. Of r how many were allowed, and for each of them remaining, reset_after, delay; and
-- if not all were, of one more remaining, reset_after, retry_after.
-- A state is a string: '1' and the kind, the limit it was written under, then the state, in doubles; it expires when it
-- would decide like an absent one. A key must name its algorithm. For Redis 6.2 or later (SET PXAT).
-- All of this runs anew in every call, and a function costs time when it is made: so what few calls need stands inside
-- a function of its own. Tested by script_test.cc and redis_script_test.cc; `./dev bench fleet` measures it.
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return {now, -1} end

local expiries = {} -- keys of one limit often share theirs
local function expiry(reset) -- in milliseconds, absolute: the moment from which the state may be forgotten
  local at = div_ceil(now + reset, 1000)
  local text = expiries[at]
  if not text then
    text = string.format('%.0f', at)
    expiries[at] = text
  end
  return text
end

-- Of every key, by its number: what is known of it and what has become of it. Not a table each: they would cost more
-- than the arithmetic.
local keys, terms_of, limit_of, state, next_state = KEYS, {}, {}, {}, {}
local x_of, y_of, z_of, next_x, next_y, next_z = {}, {}, {}, {}, {}, {} -- states that are but numbers
local moved = {} -- taking it up has changed it
local touched = {} -- by a request that may keep that
local reset_of = {} -- of what is to be written: when it is full again, -1 if that is not known

-- Each kind offers prepare(key, raw): takes up the state, settles and converts it, or says no; step(key, cost): the
-- five numbers of a decision, and what keep(key) makes the state; undo(key, cost, at): takes a charge back;
-- write(key, reset).
--
-- States of two or three numbers, behind the head, which is the limit's. An undone charge gives back no more than is
-- surely left of it.
local function make_numbers()
  local numbers = {}
  function numbers.use(terms)
    terms.size, terms.layout = 26, '<c26dd'
    if terms.mark == 'f' then
      terms.settle, terms.step = fixed_window_settle, fixed_window_step
    elseif terms.mark == 'w' then -- of its limit two numbers count, and its state is of three
      terms.settle, terms.step = sliding_window_settle, sliding_window_step
      terms.size, terms.layout = 18, '<c18ddd'
    else
      terms.settle, terms.step = bucket_settle, bucket_step
    end
    terms.head = terms.head:sub(1, terms.size)
  end
  local function convert(key, mark, raw)
    if raw:sub(1, 2) ~= '1' .. mark then return false end
    local to, p, q, a, b, c = limit_of[key], unpack_('<ddddd', raw, 3)
    if mark == 'f' then -- its window is no other's concern
      a, b, c = fixed_window_convert(b, c, 0, nil, to, now)
    elseif mark == 'w' then
      local from = {p, q}
      a, b, c = sliding_window_settle(a, b, c, from, now)
      a, b, c = sliding_window_convert(a, b, c, from, to, now)
    else
      local from = {p, q, a}
      a, b = bucket_settle(b, c, 0, from, now)
      a, b, c = bucket_convert(a, b, 0, from, to, now)
    end
    x_of[key], y_of[key], z_of[key], moved[key] = a, b, c, true
    return true
  end
  function numbers.prepare(key, raw)
    if not raw then
      x_of[key], y_of[key], z_of[key] = 0, 0, 0
      return true
    end
    if #raw ~= 42 then return false end
    local terms = terms_of[key]
    local head, x, y, z = unpack_(terms.layout, raw)
    if head ~= terms.head then return convert(key, terms.mark, raw) end
    x_of[key], y_of[key], z_of[key], moved[key] = terms.settle(x, y, z, limit_of[key], now)
    return true
  end
  function numbers.step(key, cost)
    local allowed, remaining, retry, reset, delay
    next_x[key], next_y[key], next_z[key], allowed, remaining, retry, reset, delay =
      terms_of[key].step(x_of[key], y_of[key], z_of[key], limit_of[key], now, cost)
    return allowed, remaining, retry, reset, delay
  end
  function numbers.keep(key) x_of[key], y_of[key], z_of[key] = next_x[key], next_y[key], next_z[key] end
  function numbers.write(key, reset)
    local terms = terms_of[key]
    local value = pack(terms.layout, terms.head, x_of[key], y_of[key], z_of[key])
    call('SET', keys[key], value, 'PXAT', expiry(reset))
  end
  function numbers.undo(key, cost, at)
    local limit, x, y, z = limit_of[key], x_of[key], y_of[key], z_of[key]
    if terms_of[key].mark == 'f' then -- a count of another window is gone by itself
      if x == fixed_window_at(limit, at) then y = y > cost and y - cost or 0 end
    elseif terms_of[key].mark == 'w' then
      x, y, z = sliding_window_roll(x, y, z, limit[2], now)
      local charged = div_floor(at, limit[2])
      if x == charged then
        z = z > cost and z - cost or 0
      elseif x == charged + 1 then
        y = y > cost and y - cost or 0
      end
    else -- but for what has drained since: others may have had the use of that
      y = bucket_debt(x, y, limit[2], now)
      local rest = cost * limit[3] - (now - at) * limit[2]
      if rest > y then rest = y end
      if rest > 0 then y = y - rest end
      x = now
    end
    x_of[key], y_of[key], z_of[key] = x, y, z
  end
  return numbers
end

-- A log: '1l', 48 bytes {permits, period, most events, first, n, base}, then 16 an entry; entry i is at first + i - 1.
-- What is newer than what Redis holds is in s.fresh, by first + i.
local function make_log()
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
  function log.prepare(key)
    local s = {key = keys[key], n = 0, base = 0, first = 0, fresh = {}}
    s.time = function(i) log_entry(s, i) return s.memo_time end
    s.total = function(i) log_entry(s, i) return s.memo_total end
    state[key] = s
    local head = call('GETRANGE', keys[key], 0, 49)
    if head == '' then return true end
    if #head ~= 50 or head:sub(1, 2) ~= '1l' then return false end
    local x, y, z
    x, y, z, s.first, s.n, s.base = unpack_('<dddddd', head, 3)
    local e, has_moved = sliding_log_settle(s, now)
    if has_moved then
      log_edit(s, e)
      moved[key] = true
    end
    local limit = limit_of[key]
    if x ~= limit[1] or y ~= limit[2] or z ~= limit[3] then
      log_edit(s, sliding_log_convert(s, {x, y, z}, limit, now))
      moved[key] = true
    end
    return true
  end
  function log.step(key, cost)
    local allowed, remaining, retry, reset, delay
    next_state[key], allowed, remaining, retry, reset, delay =
      sliding_log_step(state[key], limit_of[key], now, cost)
    return allowed, remaining, retry, reset, delay
  end
  function log.keep(key) log_edit(state[key], next_state[key]) end
  function log.undo(key, cost, at)
    local s = state[key]
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
  function log.write(key, reset)
    local s, limit = state[key], limit_of[key]
    for k, e in pairs(s.fresh) do
      call('SETRANGE', keys[key], 50 + (k - 1) * 16, pack('<dd', e[1], e[2]))
    end
    s.fresh, s.memo = {}, nil
    if s.base > 4503599627370496 then -- long before a total leaves the whole numbers of a double
      local live = {}
      for i = 1, s.n do
        live[i] = pack('<dd', s.time(i), s.total(i) - s.base)
      end
      s.first, s.base = 0, 0
      call('SET', keys[key], log_head(s, limit) .. table.concat(live))
    elseif s.first > 64 and s.first > s.n then -- the dead are more than the living
      local live = call('GETRANGE', keys[key], 50 + s.first * 16, 50 + (s.first + s.n) * 16 - 1)
      s.first = 0
      call('SET', keys[key], log_head(s, limit) .. live)
    else
      call('SETRANGE', keys[key], 0, log_head(s, limit))
    end
    call('PEXPIREAT', keys[key], expiry(reset))
  end
  return log
end

-- Holds: '1c' and 16 bytes {permits, longest hold}, then for each {expires, cost, length of id, id}.
local function make_holds()
  local holds = {}
  function holds.prepare(key, raw)
    state[key] = {}
    if not raw then return true end
    if #raw < 18 or raw:sub(1, 2) ~= '1c' then return false end
    local permits, longest, at = unpack_('<dd', raw, 3)
    while at <= #raw do
      local expires, cost, id
      expires, cost, id, at = unpack_('<ddBc0', raw, at)
      state[key][#state[key] + 1] = {expires, cost, id}
    end
    moved[key] = concurrency_settle(state[key], {permits, longest}, now)
    if limit_of[key][2] == 0 then limit_of[key] = {permits, longest} end -- a release brings none
    if permits ~= limit_of[key][1] or longest ~= limit_of[key][2] then
      concurrency_convert(state[key], limit_of[key], now)
      moved[key] = true
    end
    return true
  end
  function holds.step(key) return concurrency_acquire(state[key], limit_of[key], now, '', 0) end
  function holds.write(key, reset)
    local out = {'1c' .. pack('<dd', limit_of[key][1], limit_of[key][2])}
    for i, h in ipairs(state[key]) do
      out[i + 1] = pack('<ddBc0', h[1], h[2], #h[3], h[3])
    end
    call('SET', keys[key], table.concat(out), 'PXAT', expiry(reset))
  end
  return holds
end

-- A ticket: '1s' and what it stands for. state[key] is that, or nil; its reset is how long it lasts.
local function make_ticket()
  local ticket = {}
  function ticket.prepare(key, raw)
    if not raw then return true end
    if #raw ~= 10 or raw:sub(1, 2) ~= '1s' then return false end
    state[key] = unpack_('<d', raw, 3)
    return true
  end
  function ticket.write(key, lasts)
    call('SET', keys[key], '1s' .. pack('<d', state[key]), 'PX', string.format('%.0f', lasts))
  end
  return ticket
end

local made = {}
local function kind_of(mark)
  if mark == 'l' then
    made.log = made.log or make_log()
    return made.log
  elseif mark == 'c' then
    made.holds = made.holds or make_holds()
    return made.holds
  elseif mark == 's' then
    made.ticket = made.ticket or make_ticket()
    return made.ticket
  elseif mark == 'z' then
    return {prepare = function() return true end}
  end
  made.numbers = made.numbers or make_numbers()
  return made.numbers
end
local function read_terms(text, at)
  local terms = {mark = text:sub(at, at)}
  terms.kind = kind_of(terms.mark)
  if terms.mark == 's' or terms.mark == 'z' then return terms, at + 1 end
  local limit = {0, 0, 0, terms.mark == 'q' or nil}
  terms.head, terms.limit = '1' .. text:sub(at, at + 24), limit
  limit[1], limit[2], limit[3], at = unpack_('<ddd', text, at + 1)
  if terms.kind.use then terms.kind.use(terms) end
  if terms.mark ~= 'f' or limit[2] ~= 0 then return terms, at end
  local last
  last, limit[4], limit[5], limit[6], at = unpack_('<dddd', text, at)
  if now < last or now >= limit[6] then return nil end
  return terms, at
end
local all_terms, at = {}, 1
while at <= #ARGV[3] do
  local terms
  terms, at = read_terms(ARGV[3], at)
  if not terms then return redis.error_reply('WEIR the clocks are more than a calendar window apart') end
  all_terms[#all_terms + 1] = terms
end
local plain = tonumber(ARGV[2])
local raws = plain > 0 and call('MGET', unpack(keys, 1, plain)) or {}
for key = 1, #keys do
  local terms = all_terms[ARGV[4]:byte(key)]
  terms_of[key], limit_of[key] = terms, terms.limit
  if not terms.kind.prepare(key, raws[key]) then -- its own bytes have no place in an error
    return redis.error_reply('WEIR the value at key ' .. key .. ' of this call is no state of this version; delete it')
  end
end

local answer, told, asked = {now, 0}, 2, ARGV[5]
local function tell(d)
  local n = told
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4], answer[n + 5] = d[1], d[2], d[3], d[4], d[5]
  told = n + 5
end
local function tell_number(number)
  told = told + 1
  answer[told] = number
end

local function charge_each(at) -- by far the most
  local times, key, cost
  times, key, cost, at = unpack_('<HHd', asked, at)
  local kind, place, taken = terms_of[key].kind, told + 1, 0
  if cost ~= 0 then touched[key] = true end
  told = place
  while taken < times do
    local n, allowed, remaining, retry, reset, delay = told, kind.step(key, cost)
    told = n + 3
    answer[n + 1], answer[n + 2] = remaining, reset
    if allowed == 0 then
      answer[n + 3] = retry
      break
    end
    answer[n + 3] = delay
    if cost ~= 0 then
      kind.keep(key)
      reset_of[key] = reset
    end
    taken = taken + 1
  end
  answer[place] = taken
  return at
end

local function make_others()
  local function step(key, cost) return {terms_of[key].kind.step(key, cost)} end
  local function keep(key, d) -- what was just decided
    terms_of[key].kind.keep(key)
    reset_of[key] = d[4]
  end
  local function peek(key) -- what it holds without this request
    local d = step(key, 0)
    d[1], d[3] = 1, 0
    return d
  end
  local function overdraw(key, cost)
    local d = step(key, cost)
    if d[1] == 0 then
      local left = step(key, 0)[2]
      if left < cost then cost = left end
      d = step(key, cost)
      d[1], d[3] = 1, 0 -- also where a lowered limit would deny even a peek
    end
    touched[key] = true
    if cost ~= 0 then keep(key, d) end
    return d
  end

  local function read_charges(at, has_tickets)
    local list, n = {}
    n, at = unpack_('B', asked, at)
    for i = 1, n do
      local one = {}
      if has_tickets then
        one[1], one[2], one[3], at = unpack_('<HdH', asked, at)
        else
        one[1], one[2], at = unpack_('<Hd', asked, at)
      end
      list[i] = one
    end
    return list, at
  end
  local function charge_all(list) -- whether it was taken; every decision is in its charge
    local taken = true
    for i = 1, #list do
      local one = list[i]
      one[4] = step(one[1], one[2])
      if one[4][1] == 0 then taken = false end
    end
    for i = 1, #list do
      local key, cost, d = list[i][1], list[i][2], list[i][4]
      if cost ~= 0 then
        touched[key] = true
        if taken then
          keep(key, d)
        elseif d[1] == 1 then
          list[i][4] = peek(key)
        end
      end
    end
    return taken
  end
  local function tell_all(ruling, list)
    tell_number(ruling)
    for i = 1, #list do
      tell(list[i][4])
    end
  end
  local function look_at_all(list)
    for i = 1, #list do
      list[i][4] = step(list[i][1], 0)
    end
  end

  local ops = {}
  function ops.a(at)
    local list
    list, at = read_charges(at)
    tell_all(charge_all(list) and 1 or 0, list)
    return at
  end
  function ops.p(at)
    local key, cost
    key, cost, at = unpack_('<Hd', asked, at)
    local d = step(key, cost)
    if d[1] == 1 then -- what it holds before, and when its turn would be
      local delay = d[5]
      d = peek(key)
      d[5] = delay
    end
    tell_all(d[1], {{key, cost, nil, d}})
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
    terms_of[key].kind.undo(key, cost, charged)
    reset_of[key] = -1
    tell_number(1)
    return at
  end
  function ops.i(at)
    local key, lasts, list
    key, lasts, at = unpack_('<Hd', asked, at)
    list, at = read_charges(at)
    if state[key] then
      look_at_all(list)
      tell_all(2, list)
    elseif charge_all(list) then
      state[key], reset_of[key] = 0, lasts
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
      if state[list[i][3]] then
        look_at_all(list)
        tell_all(2, list)
        return at
      end
    end
    local taken = charge_all(list)
    for i = 1, taken and #list or 0 do
      state[list[i][3]], reset_of[list[i][3]] = list[i][2], lasts
    end
    tell_all(taken and 1 or 0, list)
    return at
  end
  function ops.k(at)
    local list
    list, at = read_charges(at, true)
    local ruling = 1
    for i = 1, #list do
      if not state[list[i][3]] then ruling = 3 end
    end
    tell_number(ruling)
    for i = 1, #list do
      local key, cost, t = list[i][1], list[i][2], list[i][3]
      tell(ruling == 1 and overdraw(key, cost - state[t]) or peek(key))
      tell_number(state[t] or 0)
      if ruling == 1 then state[t], reset_of[t] = nil, 0 end
    end
    return at
  end
  function ops.h(at)
    local key, cost, text
    key, cost, text, at = unpack_('<HdB', asked, at)
    local d = {concurrency_acquire(state[key], limit_of[key], now, ARGV[5 + text] or '', cost)}
    if cost ~= 0 then touched[key] = true end
    if d[1] == 1 and cost ~= 0 then reset_of[key] = d[4] end
    tell_all(d[1], {{key, cost, nil, d}})
    return at
  end
  function ops.x(at)
    local key, text
    key, text, at = unpack_('<HB', asked, at)
    local d = {concurrency_release(state[key], limit_of[key], now, ARGV[5 + text])}
    touched[key] = true
    if d[1] == 1 then reset_of[key] = d[4] end
    tell_all(d[1], {{key, 0, nil, d}})
    return at
  end
  function ops.d(at)
    local n, key
    n, at = unpack_('B', asked, at)
    local found = 0
    for _ = 1, n do
      key, at = unpack_('<H', asked, at)
      found = found + call('DEL', keys[key])
    end
    tell_number(found > 0 and 1 or 0)
    return at
  end
  return ops
end

local others
at = 1
while at <= #asked do
  if asked:byte(at) == 114 then -- r
    at = charge_each(at + 1)
  else
    others = others or make_others()
    at = others[asked:sub(at, at)](at + 1)
  end
end
for key = 1, #keys do
  local reset = reset_of[key] or (moved[key] and touched[key] and -1) -- a peek leaves it as it is
  if reset then
    local kind, _ = terms_of[key].kind
    if reset < 0 then _, _, _, reset = kind.step(key, 0) end
    if reset == 0 then call('DEL', keys[key]) else kind.write(key, reset) end
  end
end
return answer
