-- Reads and appends numbered lines. See shared_log.h.
--
-- KEYS: a sorted set; a line's score is its number. ARGV: `since`, a number; or `append`, the number of the newest
-- line, the new line's number, and the line; or `drop`, numbers. Reply to `since`: the newest number, the end of the
-- line with the given number, the number of the last line in this reply, and lines. They are at most a MiB, unless
-- there is only one, and at most a thousand, so that other clients do not wait long. Reply to the others: 1 if it was
-- done, else 0.
local key = KEYS[1]
local newest = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
local last = newest[2] or '0'
if ARGV[1] == 'since' then
  local line = redis.call('ZRANGEBYSCORE', key, ARGV[2], ARGV[2])[1] or ''
  local answer, bytes = {last, string.sub(line, -32), ARGV[2]}, 0
  while #answer < 1003 do
    local found = redis.call('ZRANGEBYSCORE', key, '(' .. answer[3], '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not found[1] then break end
    bytes = bytes + #found[1]
    if bytes > 1048576 and #answer > 3 then break end
    answer[3] = found[2]
    answer[#answer + 1] = found[1]
  end
  return answer
end
if ARGV[1] == 'drop' then
  for i = 2, #ARGV do redis.call('ZREMRANGEBYSCORE', key, ARGV[i], ARGV[i]) end
  return 1
end
if tonumber(last) ~= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', key, ARGV[3], ARGV[4])
return 1
