-- The requests other than runs, in their order, and the writing of what they changed. The last part of script.lua,
-- which documents the words of a call.
local asked = ARGV[8]
local terms_of, limit_of, from_of, head_of = kinds.terms_of, kinds.limit_of, kinds.from_of, kinds.head_of
local state, moved, touched, reset_of, made = kinds.state, kinds.moved, kinds.touched, kinds.reset_of, kinds.made
local function append(d)
  local n = filled
  answer[n + 1], answer[n + 2], answer[n + 3], answer[n + 4], answer[n + 5] = d[1], d[2], d[3], d[4], d[5]
  filled = n + 5
end
local function append_number(number)
  filled = filled + 1
  answer[filled] = number
end

local function charge_each(at)
  local times, key, cost
  times, key, cost, at = unpack_('<HHd', asked, at)
  local kind, place, taken = terms_of[key].kind, filled + 1, 0
  if cost ~= 0 then touched[key] = true end
  filled = place
  while taken < times do
    local n, allowed, remaining, retry, reset, delay = filled, kind.step(key, cost)
    filled = n + 3
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
  local function peek(key) -- its state without this request
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
      d[1], d[3] = 1, 0 -- even where a lowered limit would deny a peek
    end
    touched[key] = true
    if cost ~= 0 then keep(key, d) end
    return d
  end

  local function write_back(key, cost) -- see charge_unsynced()
    if cost == 0 then return peek(key) end
    local terms = terms_of[key]
    touched[key] = true
    if terms.step then
      local s = state[key]
      local x, y, z
      versions = versions or make_versions()
      x, y, z, from_of[key], head_of[key], reset_of[key] =
        versions.charge_unsynced(terms, cost, s[1], s[2], s[3], from_of[key], head_of[key])
      state[key] = {x, y, z}
      return peek(key)
    end
    local d = step(key, cost)
    if d[1] == 1 then
      keep(key, d)
      return d
    end
    local limit, from = limit_of[key], from_of[key]
    limit_of[key] = {1099511627776, limit[2], 1099511627776}
    overdraw(key, cost)
    from_of[key], limit_of[key] = from, limit
    return peek(key)
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
  local function charge_all(list) -- returns whether it was charged; every decision is in its charge
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
    append_number(ruling)
    for i = 1, #list do
      append(list[i][4])
    end
  end
  local function look_at_all(list)
    for i = 1, #list do
      list[i][4] = step(list[i][1], 0)
    end
  end

  local function refund(key, cost, at, rate, weight)
    touched[key] = true
    if terms_of[key].kind.refund(key, cost, at, rate, weight) then reset_of[key] = -1 end
  end
  local function settle(key, actual, ticket) -- refunds the unused part, or charges the shortfall now
    if actual >= ticket[1] then return overdraw(key, actual - ticket[1]) end
    local terms, limit, rest = terms_of[key], limit_of[key], ticket[1] - actual
    local has_windows = terms.mark == 'f' or terms.mark == 'w' or terms.mark == 'l'
    if has_windows and (ticket[4] ~= limit[2] or (terms.mark == 'f' and ticket[5] ~= limit[3])) then
      if terms.kind.refund_other(key, rest, ticket) then reset_of[key] = -1 end
    else
      refund(key, rest, ticket[2], ticket[4], ticket[5])
    end
    return peek(key)
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
    if d[1] == 1 then -- what is left before the charge, and the delay it would have
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
    local limit = limit_of[key]
    refund(key, cost, charged, limit[2], limit[3])
    append_number(1)
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
      state[key], reset_of[key] = {0}, lasts
      tell_all(1, list)
    else
      tell_all(0, list)
    end
    return at
  end
  function ops.b(at)
    local key, lasts, list
    key, lasts, at = unpack_('<Hd', asked, at)
    list, at = read_charges(at)
    local repeated = raws[key] -- not state[key]: other write-backs of this call may share the ticket
    for i = 1, #list do
      list[i][4] = repeated and peek(list[i][1]) or write_back(list[i][1], list[i][2])
    end
    if not repeated then state[key], reset_of[key] = {0}, lasts end
    tell_all(repeated and 2 or 1, list)
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
      local key, cost, t = list[i][1], list[i][2], list[i][3]
      local limit = limit_of[key]
      state[t], reset_of[t] = {cost, now, state[key][1] or 0, limit[2], limit[3]}, lasts
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
    append_number(ruling)
    for i = 1, #list do
      local key, cost, t = list[i][1], list[i][2], list[i][3]
      append(ruling == 1 and settle(key, cost, state[t]) or peek(key))
      append_number(state[t] and state[t][1] or 0)
      if ruling == 1 then state[t], reset_of[t] = nil, 0 end
    end
    return at
  end
  function ops.h(at)
    local key, cost, text
    key, cost, text, at = unpack_('<HdB', asked, at)
    local d = made.holds.acquire(key, ARGV[8 + text] or '', cost)
    if cost ~= 0 then touched[key] = true end
    if d[1] == 1 and cost ~= 0 then reset_of[key] = d[4] end
    tell_all(d[1], {{key, cost, nil, d}})
    return at
  end
  function ops.x(at)
    local key, text
    key, text, at = unpack_('<HB', asked, at)
    local d = made.holds.release(key, ARGV[8 + text])
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
    append_number(found > 0 and 1 or 0)
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
for key = runs + tickets + 1, #keys do
  local reset = reset_of[key] or (moved[key] and touched[key] and -1) -- a peek does not change it
  if reset then
    local kind, _ = terms_of[key].kind
    if reset < 0 then _, _, _, reset = kind.step(key, 0) end
    kind.write(key, reset)
  end
end
return answer
