local capacity, rate, per = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local cost = tonumber(ARGV[4] or 1)
local function isWhole(number, least) return number and number >= least and number % 1 == 0 end
if not (isWhole(capacity, 1) and isWhole(rate, 1) and isWhole(per, 1) and isWhole(cost, 0)) then
  return redis.error_reply('ERR arguments are ' .. names .. ', whole numbers')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- How much was taken and has not come back yet at the time `at`, in 1/PER_MS units.
local saved = redis.call('HMGET', KEYS[1], 'at', field)
local at, taken = tonumber(saved[1] or now), tonumber(saved[2] or 0)
-- At most as far ahead of the clock as it takes for all of it to come back.
at = math.min(at, now + math.ceil(capacity * per / rate))
if at < now then
  taken = math.max(0, taken - (now - at) * rate)
  at = now
end
local full, wanted = capacity * per, cost * per
local admitted, retry = 0, -1
if taken + wanted <= full then
  admitted, retry = 1, 0
  taken = taken + wanted
elseif wanted <= full then
  retry = at - now + math.ceil((taken + wanted - full) / rate)
end
local reset = taken > 0 and at - now + math.ceil(taken / rate) or 0
if admitted == 1 and cost > 0 then
  redis.call('HSET', KEYS[1], 'at', string.format('%.0f', at), field, string.format('%.0f', taken))
  redis.call('PEXPIRE', KEYS[1], reset + 1000)
end
return { admitted, shown(taken, full, per), retry, reset }
