-- A token bucket: bursts of up to CAPACITY, REFILL tokens every PER_MS, full at first. On Redis' own clock.
--
--   redis-cli --eval token-bucket.lua KEY , CAPACITY REFILL PER_MS COST
--
-- KEYS 1 the bucket
-- ARGV 1 CAPACITY, 2 REFILL, 3 PER_MS, all whole numbers above 0; 4 COST, a whole number from 0 up (1 unless given; 0
--      only tells how things stand)
-- Returns { 1 admitted or 0 denied, tokens left, ms until this call would be admitted (-1 never), ms until full }.
--
-- A denied call takes nothing. The key is a hash with `at` (ms of Redis' clock) and `debt` (what is missing from full, in
-- 1/PER_MS tokens); it expires when the bucket is full. A clock that steps back refills nothing until it has caught up.
local capacity, refill, per = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local cost = tonumber(ARGV[4] or 1)
local function isWhole(number, least) return number and number >= least and number % 1 == 0 end
if not (isWhole(capacity, 1) and isWhole(refill, 1) and isWhole(per, 1) and isWhole(cost, 0)) then
  return redis.error_reply('ERR arguments are CAPACITY REFILL PER_MS COST, whole numbers')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local saved = redis.call('HMGET', KEYS[1], 'at', 'debt')
local at, debt = tonumber(saved[1] or now), tonumber(saved[2] or 0)
-- No further ahead of the clock than it takes to fill the bucket.
at = math.min(at, now + math.ceil(capacity * per / refill))
if at < now then
  debt = math.max(0, debt - (now - at) * refill)
  at = now
end
local full, wanted = capacity * per, cost * per
local admitted, retry = 0, -1
if debt + wanted <= full then
  admitted, retry = 1, 0
  debt = debt + wanted
elseif wanted <= full then
  retry = at - now + math.ceil((debt + wanted - full) / refill)
end
local reset = debt > 0 and at - now + math.ceil(debt / refill) or 0
if admitted == 1 and cost > 0 then
  redis.call('HSET', KEYS[1], 'at', string.format('%.0f', at), 'debt', string.format('%.0f', debt))
  redis.call('PEXPIRE', KEYS[1], reset + 1000)
end
return { admitted, math.floor((full - debt) / per), retry, reset }
