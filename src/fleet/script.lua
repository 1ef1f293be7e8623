-- Decides many requests over limits inside Redis, in their order. Each request charges all of its limits or none.
--
-- KEYS: each key once. First the keys of runs: a run is one charge, once or several times, whose key no other request
-- uses but a write-back before it. A key that is only written back is a run of a charge of 0. Then the tickets of such
-- write-backs, then the plain keys, which are all others but logs. Then logs, and keys to delete.
-- ARGV: a deadline in microseconds of this server's clock (0: none); how many keys are of runs; how many are plain,
-- runs and tickets included; terms, each once; for every key a byte, the number of its terms; for every run a byte,
-- how many times, or nothing: once each; write-backs: nothing, or the number of their tickets, for each how long it
-- lasts, and {run, ticket, cost}; the other requests; then texts. Terms are packed, little endian; their cost is that
-- of a run:
--   f  permits, period, phase, cost                fixed_window
--   f  permits, 0, calendar, cost, the starts of the last and of this window, its end, the next one's end
--   w  permits, period, 0, cost                    sliding_window
--   l  permits, period, most events, cost          sliding_log
--   t m q  capacity, rate, weight, cost            token_bucket, leaky_meter, leaky_bucket
--   c  permits, longest hold, 0, cost              concurrency
--   s                                        a ticket: the id of a request, or one key's part of a reservation
--   z                                        a key to delete, whatever its value
-- Requests, where {...} is repeated n times, keys are numbers of KEYS and lasts is in milliseconds:
--   a n {key cost}             a charge            r times key cost          the same request, that often
--   p key cost                 a peek              o n {key cost}            as much of each as fits
--   i ticket lasts n {key cost}     a charge, once     u key cost at             refunds that charge: no decision
--   v lasts n {key cost ticket}     a reservation      k n {key cost ticket}     its end, with the actual costs
--   b ticket lasts n {key cost}     as o, once, and also beyond the limit: a write-back with keys that are no runs
--   h key cost text            acquires permits        x key text         releases them; the limit may be zeros
--   d n {key}                  deletes them: no decisions
-- Reply: {now, -1} if the call is late, or by this clock in no calendar window that was sent. Otherwise now, 0, and
-- then three parts. First the ruling of each ticket of write-backs. Second the runs: for each allowed charge
-- remaining, reset_after and, for q, delay. If not all were allowed, for one more charge -1 - remaining, reset_after,
-- retry_after (-1: never). If the key's value is no state of this version, only -2^53. Third, for each other request
-- its ruling (1 allowed or found, 0 denied or not found, 2 repeated, 3 missing) and a decision per charge: allowed,
-- remaining, retry_after, reset_after, delay; for k also what was reserved. For r it is how many were allowed, and
-- for each of them remaining, reset_after, delay; if not all were, for one more remaining, reset_after, retry_after.
--
-- A state is a string: '2' and the kind, the limit that last admitted, then the state, in doubles. States that
-- consist of numbers also have the second in which the key expires, in its lowest 16 bits, or 0 if unknown. Requests
-- may bring another version of that limit; only an admitted request makes the state its own. A key stores the states
-- of several periods one after another, the last written first; each counts alone. A key expires when it would decide
-- like an absent one, or later by at most that time again and at most an hour. Setting the expiry costs more than
-- writing the value, so most writes keep it. A key must name its algorithm. Needs Redis 6.2 or later (SET PXAT).
--
-- All of this code runs in every call, and creating a function takes time. So code that few calls need comes after
-- the early return of the others, or inside a function of its own. Tested by script_test.cc and redis_script_test.cc;
-- `./dev bench fleet` measures it.
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local version = '2' -- of the whole format, as in the names of keys: redis_key.h
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local deadline = tonumber(ARGV[1])
if deadline > 0 and now > deadline then return {now, -1} end

local texts = {} -- of times, which many keys share
-- When a state may expire that is full again after `reset`: `at` if given, in milliseconds, absolute.
local function expiry(reset, at)
  if not at then
    if reset > 1000000 then reset = div_ceil(reset, 1000000) * 1000000 end
    at = div_ceil(now + reset, 1000)
  end
  local text = texts[at]
  if not text then
    text = string.format('%.0f', at)
    texts[at] = text
  end
  return text
end

local all_terms, twins = {}, {} -- twins: of the kinds whose states are numbers
local packed_terms, at = ARGV[4], 1
while at <= #packed_terms do
  local mark, from = packed_terms:sub(at, at), at
  local terms
  if mark == 's' or mark == 'z' then
    terms, at = {mark = mark}, at + 1
  else
    local p, q, r, cost
    p, q, r, cost, at = unpack_('<dddd', packed_terms, at + 1)
    local limit, twin = {p, q, r, mark == 'q' or nil}, twins[mark]
    if mark == 'l' or mark == 'c' then
      terms = {mark = mark, limit = limit}
    else
      if not twin then
        twin = mark == 'f' and load_fixed_window() or mark == 'w' and load_sliding_window() or load_bucket()
        twins[mark] = twin
      end
      local is_wide = mark == 'w' -- two numbers of its limit count, and its state has three
      local head = version .. packed_terms:sub(from, from + (is_wide and 16 or 24))
      terms = {mark = mark, head = head, limit = limit, cost = cost, layout = is_wide and '<c18dddH' or '<c26ddH',
        settle = twin.settle, step = twin.step, refund = twin.refund}
    end
    if mark == 'f' and q == 0 then
      limit[7], limit[4], limit[5], limit[6], at = unpack_('<dddd', packed_terms, at)
      -- The caller learns the time from this reply and chooses other windows.
      if now < limit[7] or now >= limit[6] then return {now, -1} end
    end
  end
  all_terms[#all_terms + 1] = terms
end

-- For the states that few calls meet: those of another version of the limit, those beside states of other periods, and
-- those with unsynced charges. A value is one or more records of 44 bytes: the head, which is the limit's, then two or
-- three numbers.
local function make_versions()
  local made = {}
  function made.period_end(terms) return terms.mark == 'f' and 26 or terms.mark == 'w' and 18 or 10 end
  function made.read_record(terms, record)
    local head, x, y, z, expires = unpack_(terms.layout, record)
    if terms.mark ~= 'w' then z, expires = 0, z end
    local limit, from = terms.limit, terms.limit
    if head ~= terms.head then -- another version, or another period
      local p, q, r = unpack_('<ddd', record, 3)
      from = {p, q, r, limit[4], limit[5], limit[6], limit[7]}
    end
    return x, y, z, expires, from, head
  end
  local function reset_of_record(terms, record) -- of another period
    local x, y, z, _, from = made.read_record(terms, record)
    if terms.mark ~= 'w' then return x > now and x - now or 0 end
    local _, _, _, _, _, _, reset = terms.step(x, y, z, from, now, 0, from)
    return reset
  end
  function made.take_up(terms, raw) -- a state of another version, or one among other periods
    if #raw % 44 ~= 0 then return nil end
    local last, own, others = made.period_end(terms), nil, nil
    for i = 1, #raw, 44 do
      local record = raw:sub(i, i + 43)
      if record:sub(1, 2) ~= terms.head:sub(1, 2) then return nil end
      if record:sub(11, last) == terms.head:sub(11, last) then
        own = record
      elseif reset_of_record(terms, record) > 0 then
        others = (others or '') .. record:sub(1, 42) .. '\0\0'
      end
    end
    if not own then return 0, 0, 0, false, 0, terms.limit, terms.head, others end
    local x, y, z, expires, from, head = made.read_record(terms, own)
    if others then expires = 0 end
    local moved
    x, y, z, moved = terms.settle(x, y, z, from, now)
    return x, y, z, moved, expires, from, head, others
  end
  function made.put(name, terms, head, x, y, z, reset, others) -- the others do not store when the key expires
    local value = reset == 0 and '' or terms.mark == 'w' and pack(terms.layout, head, x, y, z, 0)
      or pack(terms.layout, head, x, y, 0)
    for i = 1, #others, 44 do
      local other = reset_of_record(terms, others:sub(i, i + 43))
      if other > reset then reset = other end
    end
    call('SET', name, value .. others, 'PXAT', expiry(reset))
  end
  -- Counts what was admitted elsewhere as used, even beyond the limit. A bucket then belongs to a version with that
  -- capacity.
  function made.charge_unsynced(terms, cost, x, y, z, from, head)
    local step, limit = terms.step, terms.limit
    local a, b, c, allowed, left, _, reset, _, converts = step(x, y, z, limit, now, cost, from)
    if allowed == 1 then
      if converts then from, head = limit, terms.head end
      return a, b, c, from, head, reset
    end
    local wide = {1099511627776, limit[2], limit[3], limit[4], limit[5], limit[6], limit[7]}
    if terms.mark ~= 'f' and terms.mark ~= 'w' then
      left = 0
      if from[1] < limit[1] then _, _, _, _, left = step(x, y, z, limit, now, 0, from) end
      if left > 0 then -- as much as fits the higher version, which makes the state its own
        x, y, z, _, _, _, _, _, converts = step(x, y, z, limit, now, left, from)
        if converts then from, head = limit, terms.head end
        cost = cost - left
      end
      local used, most = div_ceil(y, from[3]) + cost, div_floor(4503599627370496, from[3])
      if used > most then used = most end
      if used < from[1] then used = from[1] end
      wide = {used, from[2], from[3], from[4]}
      from, head = wide, head:sub(1, 2) .. pack('<d', used) .. head:sub(11)
    end
    a, b, c, allowed = step(x, y, z, wide, now, cost, from)
    if allowed == 0 then
      _, _, _, _, left = step(x, y, z, wide, now, 0, from)
      a, b, c = step(x, y, z, wide, now, left < cost and left or cost, from)
    end
    _, _, _, _, _, _, reset = step(a, b, c, limit, now, 0, from)
    return a, b, c, from, head, reset
  end
  return made
end
local versions -- made when a call needs them

-- Returns the state as of now, whether that changed it, when it expires, the limit it belongs to, that limit's head,
-- and the states of other periods; nothing if the value is not a valid state.
local function take_up(terms, raw)
  if not raw then return 0, 0, 0, false, 0, terms.limit, terms.head end
  if #raw == 44 then
    local head, x, y, z, expires = unpack_(terms.layout, raw)
    if head == terms.head then
      if terms.mark ~= 'w' then z, expires = 0, z end
      local limit, moved = terms.limit, nil
      x, y, z, moved = terms.settle(x, y, z, limit, now)
      return x, y, z, moved, expires, limit, head
    end
  end
  versions = versions or make_versions()
  return versions.take_up(terms, raw)
end
local second = div_floor(now, 1000000)
local function put(name, terms, head, x, y, z, reset, expires, others) -- others: from take_up(), which made versions
  if others then return versions.put(name, terms, head, x, y, z, reset, others) end
  if reset == 0 then return call('DEL', name) end
  local left = (expires - second) % 65536 -- seconds; a value above the largest ever set is in the past
  local is_late = expires > 0 and left <= 65000 and left * 1000000 - (now - second * 1000000) >= reset
  local at
  if not is_late then
    expires = 0
    if reset > 1000000 then
      local ahead = reset + (reset < 3600000000 and reset or 3600000000)
      if ahead < 64900000000 then
        at = div_ceil(now + ahead, 1000000)
        expires = at % 65536
        at = at * 1000
      end
    end
  end
  local layout = terms.layout
  local value = terms.mark == 'w' and pack(layout, head, x, y, z, expires) or pack(layout, head, x, y, expires)
  if is_late then
    call('SET', name, value, 'KEEPTTL')
  else
    call('SET', name, value, 'PXAT', expiry(reset, at))
  end
end

local keys, runs, plain, which = KEYS, tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5]
local raws = plain > 0 and call('MGET', unpack(keys, 1, plain)) or {}
local tickets = 0 -- of write-backs that are sent along with runs
if ARGV[7] ~= '' then tickets = unpack_('<H', ARGV[7]) end

