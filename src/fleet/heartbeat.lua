-- One heartbeat: a node registers, or leaves, and receives the list of live nodes. See membership.h.
--
-- KEYS: a hash. ARGV: the node's id, its description (empty: it leaves), how many milliseconds the heartbeat is valid.
-- Reply: the time, then id, age and description of each node.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local key, id, says, believed = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
if says == '' then
  redis.call('HDEL', key, id)
else
  redis.call('HSET', key, id, string.format('%.0f ', now) .. says)
  redis.call('PEXPIRE', key, believed)
end
local all, answer = redis.call('HGETALL', key), {now}
for i = 1, #all, 2 do
  local at, text = string.match(all[i + 1], '^(%d+) (.*)$')
  local age = at and now - tonumber(at)
  if age and age <= believed and age >= -believed then
    answer[#answer + 1] = all[i]
    answer[#answer + 1] = string.format('%.0f', age)
    answer[#answer + 1] = text
  else
    redis.call('HDEL', key, all[i])
  end
end
return answer
