-- Runs, which are by far the most frequent requests, and the write-backs sent along with them. A part of script.lua,
-- which documents the words of a call. A call that has nothing else ends here.
local wrong -- a key whose value is no state
local unsynced, lasts, repeated -- for each run, what to write before it is charged, unless that was done before
if tickets > 0 then
  local text, from = ARGV[7], 3
  unsynced, lasts, repeated = {}, {}, {}
  for ticket = runs + 1, runs + tickets do
    lasts[ticket], from = unpack_('<d', text, from)
    repeated[ticket] = raws[ticket]
    if raws[ticket] and raws[ticket]:sub(1, 2) ~= version .. 's' then wrong = wrong or ticket end
  end
  while from <= #text do
    local key, ticket, cost
    key, ticket, cost, from = unpack_('<HHd', text, from)
    if cost ~= 0 and not repeated[ticket] then unsynced[key] = cost end
  end
end
local kinds = runs + tickets < #keys and load_script_kinds() or nil
wrong = wrong or (kinds and kinds.wrong)
if wrong then -- the error must not contain the value's own bytes
  return redis.error_reply('WEIR the value at key ' .. wrong .. ' of this call is no state of this version; delete it')
end

local answer, filled = {now, 0, nil, nil}, 2 -- allocated for one decision
for ticket = runs + 1, runs + tickets do
  filled = filled + 1
  answer[filled] = repeated[ticket] and 2 or 1
  if not repeated[ticket] then
    call('SET', keys[ticket], version .. 's' .. pack('<d', 0), 'PX', string.format('%.0f', lasts[ticket]))
  end
end
local numbers = all_terms[2] and {which:byte(1, runs)}
local times = ARGV[6] ~= '' and {ARGV[6]:byte(1, runs)}
for key = 1, runs do
  local terms = all_terms[numbers and numbers[key] or 1]
  local x, y, z, moved, expires, from, head, periods = take_up(terms, raws[key])
  if x then
    local limit, step, cost = terms.limit, terms.step, terms.cost
    local found
    if unsynced and unsynced[key] then
      versions = versions or make_versions()
      x, y, z, from, head, found = versions.charge_unsynced(terms, unsynced[key], x, y, z, from, head)
    end
    for _ = 1, times and times[key] or 1 do
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
    if found then put(keys[key], terms, head, x, y, z, found, expires, periods) end
  else
    filled = filled + 1
    answer[filled] = -9007199254740992
  end
end
if not kinds then return answer end
