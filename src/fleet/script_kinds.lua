-- The kinds of states for requests other than runs: how each is read, decided and written. A part of script.lua,
-- which documents the words of a call. It is the body of load_script_kinds(), which also reads the states and returns
-- what script_requests.lua needs, or `wrong`, a key whose value is no state. The tables below say what is known of
-- each key that no run uses, and what has changed. Their index is the key's number.
local terms_of, limit_of, state, next_state = {}, {}, {}, {}
local moved = {} -- reading it has changed it
local from_of = {} -- the limit that it belongs to: the one that last admitted
local head_of, expires_of, others_of = {}, {}, {} -- of states that consist of numbers
local touched = {} -- by a request that may save that change
local reset_of = {} -- for states to write: when full again, -1 if unknown

-- Each kind has these functions. prepare(key, raw) reads the state and settles it, or returns false. step(key, cost)
-- returns the five numbers of a decision, and stores what keep(key) makes the state. refund(key, cost, at, rate,
-- weight) refunds a charge of that time, as far as it still counts, and returns whether anything changed.
-- refund_other(key, cost, ticket) does the same in the state of another period, for which the ticket was written.
-- write(key, reset) writes the state.
local function make_numbers()
  local numbers = {}
  function numbers.prepare(key, raw)
    local x, y, z
    x, y, z, moved[key], expires_of[key], from_of[key], head_of[key], others_of[key] = take_up(terms_of[key], raw)
    state[key] = {x, y, z}
    return x
  end
  function numbers.step(key, cost)
    local s = state[key]
    local x, y, z, allowed, remaining, retry, reset, delay, converts =
      terms_of[key].step(s[1], s[2], s[3], limit_of[key], now, cost, from_of[key])
    next_state[key] = {x, y, z, converts}
    return allowed, remaining, retry, reset, delay
  end
  function numbers.keep(key)
    state[key] = next_state[key]
    if state[key][4] then from_of[key], head_of[key] = limit_of[key], terms_of[key].head end
  end
  function numbers.write(key, reset)
    local s = state[key]
    put(keys[key], terms_of[key], head_of[key], s[1], s[2], s[3], reset, expires_of[key], others_of[key])
  end
  function numbers.refund(key, cost, at, rate, weight)
    local s = state[key]
    local x, y, z = terms_of[key].refund(s[1], s[2], s[3], from_of[key], now, at, cost, rate, weight)
    state[key] = {x, y, z}
    return x ~= s[1] or y ~= s[2] or z ~= s[3]
  end
  function numbers.refund_other(key, cost, ticket)
    local terms, others, kept, found = terms_of[key], others_of[key] or '', {}, false
    versions = versions or make_versions()
    local last, is_wide = versions.period_end(terms), terms.mark == 'w'
    local period = pack('<dd', ticket[4], ticket[5]):sub(1, last - 10)
    for i = 1, #others, 44 do
      local record = others:sub(i, i + 43)
      if record:sub(11, last) == period then
        local x, y, z, _, from, head = versions.read_record(terms, record)
        local a, b, c = x, y, z
        if is_wide then
          a, b, c = terms.refund(x, y, z, from, now, ticket[2], cost)
        elseif x == ticket[3] and x > now then -- the window that was charged, of any calendar
          b = y > cost and y - cost or 0
        end
        found = b ~= y or c ~= z
        record = is_wide and pack(terms.layout, head, a, b, c, 0) or pack(terms.layout, head, a, b, 0)
        if b == 0 and c == 0 then record = '' end
      end
      kept[#kept + 1] = record
    end
    local value = table.concat(kept)
    if found then others_of[key] = value ~= '' and value or nil end
    return found
  end
  return numbers
end

-- A log: '2l', 48 bytes {permits, period, most events, first, n, base}, then 16 per entry; entry i is at first + i -
-- 1. Entries newer than those in Redis are in s.fresh, by first + i. Logs of several periods: '2L', then each log
-- after its length; such a key is read and written as a whole.
local function make_log()
  local log, twin = {}, load_sliding_log()
  local function log_entry(s, i)
    if s.memo == i then return end
    s.memo = i
    local e = s.fresh[s.first + i]
    if e then
      s.memo_time, s.memo_total = e[1], e[2]
    else
      local at = 50 + (s.first + i - 1) * 16
      local text = s.text and s.text:sub(at + 1, at + 16) or call('GETRANGE', s.key, at, at + 15)
      s.memo_time, s.memo_total = unpack_('<dd', text)
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
  local function split(key, others) -- returns the log of this period, if any; adds all other live ones to `others`
    local raw = call('GETRANGE', keys[key], 0, -1)
    local period, own, at = limit_of[key][2], nil, 1
    while at <= #raw do
      local text = raw
      if at == 1 and raw:sub(1, 2) == version .. 'L' then at = 3 end
      if at > 1 then
        local size = unpack_('<d', raw, at)
        text = raw:sub(at + 8, at + 7 + size)
        at = at + 8 + size
      else
        at = #raw + 1
      end
      local _, its_period, _, first, n = unpack_('<ddddd', text, 3)
      if its_period == period then
        own = text
      elseif n > 0 and unpack_('<d', text, 51 + (first + n - 1) * 16) + its_period > now then
        others[#others + 1] = text
      end
    end
    return own
  end
  function log.prepare(key)
    local s = {key = keys[key], n = 0, base = 0, first = 0, fresh = {}}
    s.time = function(i) log_entry(s, i) return s.memo_time end
    s.total = function(i) log_entry(s, i) return s.memo_total end
    state[key], from_of[key] = s, limit_of[key]
    local head = call('GETRANGE', keys[key], 0, 49)
    if head == '' then return true end
    local kind, limit = head:sub(1, 2), limit_of[key]
    if #head ~= 50 or (kind ~= version .. 'l' and kind ~= version .. 'L') then return false end
    local x, y, z, first, n, base = unpack_('<dddddd', head, 3)
    if kind == version .. 'L' or y ~= limit[2] then
      s.others = {}
      s.text = split(key, s.others)
      if not s.text then return true end
      x, y, z, first, n, base = unpack_('<dddddd', s.text, 3)
    end
    s.first, s.n, s.base = first, n, base
    if x ~= limit[1] or z ~= limit[3] then from_of[key] = {x, y, z} end
    local e, has_moved = twin.settle(s, now)
    if has_moved then
      log_edit(s, e)
      moved[key] = true
    end
    return true
  end
  function log.step(key, cost)
    local allowed, remaining, retry, reset, delay, converts
    next_state[key], allowed, remaining, retry, reset, delay, converts =
      twin.step(state[key], limit_of[key], now, cost)
    next_state[key].converts = converts
    return allowed, remaining, retry, reset, delay
  end
  function log.keep(key)
    log_edit(state[key], next_state[key])
    if next_state[key].converts then from_of[key] = limit_of[key] end
  end
  local function take_back(s, limit, cost, at)
    local from, taken, drops = twin.refund(s, limit, now, at, cost)
    if taken == 0 then return false end
    local fresh, gone = {}, drops and 1 or 0
    for k = from + gone, s.n do
      fresh[s.first + k - gone] = {s.time(k), s.total(k) - taken}
    end
    s.n, s.memo = s.n - gone, nil
    for k = s.first + from, s.first + s.n + 1 do
      s.fresh[k] = fresh[k]
    end
    return true
  end
  function log.refund(key, cost, at) return take_back(state[key], limit_of[key], cost, at) end
  local function log_head(s, limit)
    return version .. 'l' .. pack('<dddddd', limit[1], limit[2], limit[3], s.first, s.n, s.base)
  end
  local function compact(s, limit) -- the whole log without expired entries; totals restart at 0
    local live = {}
    for i = 1, s.n do
      live[i] = pack('<dd', s.time(i), s.total(i) - s.base)
    end
    s.first, s.base, s.fresh, s.memo = 0, 0, {}, nil
    return log_head(s, limit) .. table.concat(live)
  end
  function log.refund_other(key, cost, ticket)
    local others = state[key].others or {}
    for i, text in ipairs(others) do
      local x, y, z, first, n, base = unpack_('<dddddd', text, 3)
      local s = {text = text, n = n, base = base, first = first, fresh = {}}
      s.time = function(k) log_entry(s, k) return s.memo_time end
      s.total = function(k) log_entry(s, k) return s.memo_total end
      if y == ticket[4] and take_back(s, {x, y, z}, cost, ticket[2]) then
        if s.n > 0 then others[i] = compact(s, {x, y, z}) else table.remove(others, i) end
        return true
      end
    end
    return false
  end
  local function write_among(key, s, reset) -- the logs of all periods
    local all = s.n > 0 and {compact(s, from_of[key])} or {}
    s.text = all[1]
    for _, text in ipairs(s.others) do
      local _, period, _, first, n = unpack_('<ddddd', text, 3)
      local left = unpack_('<d', text, 51 + (first + n - 1) * 16) + period - now
      if left > reset then reset = left end
      all[#all + 1] = text
    end
    if reset == 0 then return call('DEL', keys[key]) end
    local value = all[1]
    if #all > 1 then
      for i = 1, #all do
        all[i] = pack('<d', #all[i]) .. all[i]
      end
      value = version .. 'L' .. table.concat(all)
    end
    call('SET', keys[key], value, 'PXAT', expiry(reset))
  end
  function log.write(key, reset)
    local s, limit = state[key], from_of[key]
    if s.others then return write_among(key, s, reset) end
    if reset == 0 then return call('DEL', keys[key]) end
    for k, e in pairs(s.fresh) do
      call('SETRANGE', keys[key], 50 + (k - 1) * 16, pack('<dd', e[1], e[2]))
    end
    s.fresh, s.memo = {}, nil
    if s.base > 4503599627370496 then -- long before a total exceeds the whole numbers of a double
      call('SET', keys[key], compact(s, limit))
    elseif s.first > 64 and s.first > s.n then -- more entries have expired than are live
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

-- Permits in flight: '2c' and 16 bytes {permits, longest hold}, then for each id {expires, cost, length of id, id}.
local function make_holds()
  local holds, twin = {}, load_concurrency()
  function holds.prepare(key, raw)
    state[key], from_of[key] = {}, limit_of[key]
    if not raw then return true end
    if #raw < 18 or raw:sub(1, 2) ~= version .. 'c' then return false end
    local permits, longest, at = unpack_('<dd', raw, 3)
    while at <= #raw do
      local expires, cost, id
      expires, cost, id, at = unpack_('<ddBc0', raw, at)
      state[key][#state[key] + 1] = {expires, cost, id}
    end
    from_of[key] = {permits, longest}
    moved[key] = twin.settle(state[key], from_of[key], now)
    if limit_of[key][2] == 0 then limit_of[key] = from_of[key] end -- a release sends no limit
    return true
  end
  function holds.step(key) return twin.acquire(state[key], limit_of[key], now, '', 0) end
  function holds.acquire(key, id, cost)
    local d = {twin.acquire(state[key], limit_of[key], now, id, cost)}
    if d[1] == 1 and cost > 0 and twin.suits(state[key], limit_of[key], now) then from_of[key] = limit_of[key] end
    return d
  end
  function holds.release(key, id) return {twin.release(state[key], from_of[key], now, id)} end
  function holds.write(key, reset)
    if reset == 0 then return call('DEL', keys[key]) end
    local out = {version .. 'c' .. pack('<dd', from_of[key][1], from_of[key][2])}
    for i, h in ipairs(state[key]) do
      out[i + 1] = pack('<ddBc0', h[1], h[2], #h[3], h[3])
    end
    call('SET', keys[key], table.concat(out), 'PXAT', expiry(reset))
  end
  return holds
end

-- A ticket: '2s' and numbers: 0, or for a reservation {amount, when it was charged, the end of a fixed window, the
-- limit's second and third number}. state[key] is a list of them, or nil; its reset is how long it lasts.
local function make_ticket()
  local ticket = {}
  function ticket.prepare(key, raw)
    if not raw then return true end
    if raw:sub(1, 2) ~= version .. 's' then return false end
    if #raw == 10 then state[key] = {unpack_('<d', raw, 3)} return true end
    state[key] = {unpack_('<ddddd', raw, 3)}
    return #raw == 42
  end
  function ticket.write(key, lasts)
    if lasts == 0 then return call('DEL', keys[key]) end
    local s = state[key]
    local value = #s == 1 and pack('<d', s[1]) or pack('<ddddd', s[1], s[2], s[3], s[4], s[5])
    call('SET', keys[key], version .. 's' .. value, 'PX', string.format('%.0f', lasts))
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
for key = runs + tickets + 1, #keys do
  local terms = all_terms[which:byte(key)]
  terms.kind = terms.kind or kind_of(terms.mark)
  terms_of[key], limit_of[key] = terms, terms.limit
  if not terms.kind.prepare(key, raws[key]) then return {wrong = key} end
end
return {terms_of = terms_of, limit_of = limit_of, state = state, moved = moved, from_of = from_of, head_of = head_of,
  touched = touched, reset_of = reset_of, made = made}
