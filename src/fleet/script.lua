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
local function text_of(at)
  local text = texts[at]
  if not text then
    text = string.format('%.0f', at)
    texts[at] = text
  end
  return text
end
local function expiry(reset) -- in milliseconds, absolute: when the state may expire
  if reset > 1000000 then reset = div_ceil(reset, 1000000) * 1000000 end
  return text_of(div_ceil(now + reset, 1000))
end

local twins = {} -- of the kinds whose states are numbers
local function twin_of(mark)
  local twin = twins[mark]
  if not twin then
    twin = mark == 'f' and load_fixed_window() or mark == 'w' and load_sliding_window() or load_bucket()
    twins[mark] = twin
  end
  return twin
end
local function read_terms(text, at)
  local mark = text:sub(at, at)
  local terms = {mark = mark}
  if mark == 's' or mark == 'z' then return terms, at + 1 end
  local limit = {0, 0, 0, mark == 'q' or nil}
  terms.head, terms.limit, terms.period_at = version .. text:sub(at, at + 24), limit, 10
  limit[1], limit[2], limit[3], terms.cost, at = unpack_('<dddd', text, at + 1)
  if mark == 'l' or mark == 'c' then return terms, at end
  local twin = twin_of(mark)
  terms.settle, terms.step, terms.refund, terms.layout = twin.settle, twin.step, twin.refund, '<c26ddH'
  if mark == 'w' then -- two numbers of its limit count, and its state has three
    terms.head, terms.layout, terms.is_wide, terms.period_at = terms.head:sub(1, 18), '<c18dddH', true, 18
  elseif mark == 'f' then
    terms.period_at = 26
  end
  if mark ~= 'f' or limit[2] ~= 0 then return terms, at end
  local last
  last, limit[4], limit[5], limit[6], at = unpack_('<dddd', text, at)
  limit[7] = last
  if now < last or now >= limit[6] then return nil end
  return terms, at
end
local all_terms, at = {}, 1
while at <= #ARGV[4] do
  local terms
  terms, at = read_terms(ARGV[4], at)
  if not terms then return {now, -1} end -- the caller learns the time from it and chooses other windows
  all_terms[#all_terms + 1] = terms
end
local function refuse(key) -- the error must not contain the value's own bytes
  return redis.error_reply('WEIR the value at key ' .. key .. ' of this call is no state of this version; delete it')
end

-- States of two or three numbers, 44 bytes each, after the head, which is the limit's.
local function read_record(terms, record)
  local head, x, y, z, expires = unpack_(terms.layout, record)
  if not terms.is_wide then z, expires = 0, z end
  local limit, from = terms.limit, terms.limit
  if head ~= terms.head then -- another version, or another period
    local p, q, r = unpack_('<ddd', record, 3)
    from = {p, q, r, limit[4], limit[5], limit[6], limit[7]}
  end
  return x, y, z, expires, from, head
end
local function reset_of_record(terms, record) -- of another period
  local x, y, z, _, from = read_record(terms, record)
  if not terms.is_wide then return x > now and x - now or 0 end
  local _, _, _, _, _, _, reset = terms.step(x, y, z, from, now, 0, from)
  return reset
end
local function take_up_among(terms, raw) -- a state of another version, or one among other periods
  if #raw % 44 ~= 0 then return nil end
  local last, own, others = terms.period_at, nil, nil
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
  local x, y, z, expires, from, head = read_record(terms, own)
  if others then expires = 0 end
  local moved
  x, y, z, moved = terms.settle(x, y, z, from, now)
  return x, y, z, moved, expires, from, head, others
end
-- Returns the state as of now, whether that changed it, when it expires, the limit it belongs to, that limit's head,
-- and the states of other periods; nothing if the value is not a valid state.
local function take_up(terms, raw)
  if not raw then return 0, 0, 0, false, 0, terms.limit, terms.head end
  if #raw ~= 44 then return take_up_among(terms, raw) end
  local head, x, y, z, expires = unpack_(terms.layout, raw)
  if head ~= terms.head then return take_up_among(terms, raw) end
  if not terms.is_wide then z, expires = 0, z end
  local moved
  x, y, z, moved = terms.settle(x, y, z, terms.limit, now)
  return x, y, z, moved, expires, terms.limit, head
end
local second = div_floor(now, 1000000)
local function put_among(name, terms, value, reset, others) -- the others do not store when the key expires
  for i = 1, #others, 44 do
    local other = reset_of_record(terms, others:sub(i, i + 43))
    if other > reset then reset = other end
  end
  call('SET', name, value .. others, 'PXAT', expiry(reset))
end
local function put(name, terms, head, x, y, z, reset, expires, others)
  if reset == 0 then
    if others then put_among(name, terms, '', 0, others) else call('DEL', name) end
    return
  end
  local left = (expires - second) % 65536 -- seconds; a value above the largest ever set is in the past
  local is_late = expires > 0 and left <= 65000 and left * 1000000 - (now - second * 1000000) >= reset
  local at
  if not is_late then
    expires = 0
    if reset > 1000000 and not others then
      local ahead = reset + (reset < 3600000000 and reset or 3600000000)
      if ahead < 64900000000 then
        at = div_ceil(now + ahead, 1000000)
        expires = at % 65536
        at = at * 1000
      end
    end
  end
  local value = terms.is_wide and pack(terms.layout, head, x, y, z, expires) or pack(terms.layout, head, x, y, expires)
  if others then
    put_among(name, terms, value, reset, others)
  elseif is_late then
    call('SET', name, value, 'KEEPTTL')
  else
    call('SET', name, value, 'PXAT', at and text_of(at) or expiry(reset))
  end
end

local keys, runs, plain, which = KEYS, tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5]
local raws = plain > 0 and call('MGET', unpack(keys, 1, plain)) or {}

-- Write-backs sent along with runs: for each run, what to write before it is charged, unless that was done before.
local unsynced, tickets, lasts, repeated = nil, 0, {}, {}
local function read_unsynced(text) -- returns a key that is no valid ticket, if any
  local from
  tickets, from = unpack_('<H', text)
  unsynced = {}
  for ticket = runs + 1, runs + tickets do
    lasts[ticket], from = unpack_('<d', text, from)
    repeated[ticket] = raws[ticket]
    if raws[ticket] and raws[ticket]:sub(1, 2) ~= version .. 's' then return ticket end
  end
  while from <= #text do
    local key, ticket, cost
    key, ticket, cost, from = unpack_('<HHd', text, from)
    if cost ~= 0 and not repeated[ticket] then unsynced[key] = cost end
  end
end
if ARGV[7] ~= '' then
  local wrong = read_unsynced(ARGV[7])
  if wrong then return refuse(wrong) end
end
-- Counts what was admitted elsewhere as used, even beyond the limit. A bucket then belongs to a version with that
-- capacity.
local function charge_unsynced(terms, cost, x, y, z, from, head)
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

local answer, filled, asked = {now, 0}, 2, ARGV[8]
local function charge_run(key, terms, times, x, y, z, moved, expires, from, head, others)
  local limit, step, cost = terms.limit, terms.step, terms.cost
  local found
  if unsynced and unsynced[key] then
    x, y, z, from, head, found = charge_unsynced(terms, unsynced[key], x, y, z, from, head)
  end
  for _ = 1, times do
    local a, b, c, allowed, remaining, retry, reset, delay, converts = step(x, y, z, limit, now, cost, from)
    if allowed == 0 then
      answer[filled + 1], answer[filled + 2], answer[filled + 3] = -1 - remaining, reset, retry
      filled = filled + 3
      break
    end
    answer[filled + 1], answer[filled + 2] = remaining, reset
    filled = filled + 2
    if terms.mark == 'q' then
      filled = filled + 1
      answer[filled] = delay
    end
    if cost ~= 0 then x, y, z, found = a, b, c, reset end
    if converts then from, head = limit, terms.head end
  end
  if moved and not found and cost ~= 0 then
    local _
    _, _, _, _, _, _, found = step(x, y, z, limit, now, 0, from)
  end
  if found then put(keys[key], terms, head, x, y, z, found, expires, others) end
end
local function charge_runs() -- by far the most frequent requests
  for ticket = runs + 1, runs + tickets do
    filled = filled + 1
    answer[filled] = repeated[ticket] and 2 or 1
    if not repeated[ticket] then
      call('SET', keys[ticket], version .. 's' .. pack('<d', 0), 'PX', string.format('%.0f', lasts[ticket]))
    end
  end
  local numbers, times = {which:byte(1, runs)}, {ARGV[6]:byte(1, runs)}
  for key = 1, runs do
    local terms = all_terms[numbers[key]]
    local x, y, z, moved, expires, from, head, others = take_up(terms, raws[key])
    if x then
      charge_run(key, terms, times[key] or 1, x, y, z, moved, expires, from, head, others)
    else
      filled = filled + 1
      answer[filled] = -9007199254740992
    end
  end
end
if runs + tickets == #keys then
  charge_runs()
  return answer
end
