-- A typical rate limit inside Redis: GCRA with one string per key and the clock of the server. It returns the integers
-- of CL.THROTTLE. The client computes what it can before, so this is the fastest plain form that stays exact.
-- KEYS[1]; ARGV: microseconds between permits, burst.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local emission, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local tolerance = emission * burst
local arrival = tonumber(redis.call('GET', KEYS[1]) or now)
if arrival < now then arrival = now end
local room = now + tolerance - arrival - emission
if room < 0 then
  return {1, burst, 0, math.ceil(-room / 1000000), math.ceil((arrival - now) / 1000000)}
end
arrival = arrival + emission
redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))
return {0, burst, math.floor(room / emission), -1, math.ceil((arrival - now) / 1000000)}
