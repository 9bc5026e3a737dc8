-- Counts the free permits.
--
-- KEYS 1 permits taken (owners by the end of their lease), 2 permits added or drained
-- ARGV 1 the initial number of permits
local time = redis.call('TIME')
local now = string.format('(%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local permits = ARGV[1] + (redis.call('GET', KEYS[2]) or 0)
return math.max(0, permits - redis.call('ZCOUNT', KEYS[1], now, '+inf'))
