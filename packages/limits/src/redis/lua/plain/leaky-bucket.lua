-- A leaky bucket: each call adds its COST to a bucket that holds CAPACITY and loses LEAK every PER_MS; a call that would
-- overflow it is denied. Empty at first. On Redis' own clock.
--
--   redis-cli --eval leaky-bucket.lua KEY , CAPACITY LEAK PER_MS COST
--
-- KEYS 1 the bucket
-- ARGV 1 CAPACITY, 2 LEAK, 3 PER_MS, all whole numbers above 0; 4 COST, a whole number from 0 up (1 unless given; 0 only
--      tells how things stand)
-- Returns { 1 admitted or 0 denied, what is in the bucket (rounded up), ms until this call would be admitted (-1 never),
--      ms until empty }.
--
-- A denied call adds nothing. The key is a hash with `at` (ms of Redis' clock) and `level` (in 1/PER_MS units); it
-- expires when the bucket is empty. A clock that steps back leaks nothing until it has caught up.
local capacity, leak, per = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local cost = tonumber(ARGV[4] or 1)
local function isWhole(number, least) return number and number >= least and number % 1 == 0 end
if not (isWhole(capacity, 1) and isWhole(leak, 1) and isWhole(per, 1) and isWhole(cost, 0)) then
  return redis.error_reply('ERR arguments are CAPACITY LEAK PER_MS COST, whole numbers')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local saved = redis.call('HMGET', KEYS[1], 'at', 'level')
local at, level = tonumber(saved[1] or now), tonumber(saved[2] or 0)
-- No further ahead of the clock than it takes to empty the bucket.
at = math.min(at, now + math.ceil(capacity * per / leak))
if at < now then
  level = math.max(0, level - (now - at) * leak)
  at = now
end
local full, added = capacity * per, cost * per
local admitted, retry = 0, -1
if level + added <= full then
  admitted, retry = 1, 0
  level = level + added
elseif added <= full then
  retry = at - now + math.ceil((level + added - full) / leak)
end
local reset = level > 0 and at - now + math.ceil(level / leak) or 0
if admitted == 1 and cost > 0 then
  redis.call('HSET', KEYS[1], 'at', string.format('%.0f', at), 'level', string.format('%.0f', level))
  redis.call('PEXPIRE', KEYS[1], reset + 1000)
end
return { admitted, math.ceil(level / per), retry, reset }
